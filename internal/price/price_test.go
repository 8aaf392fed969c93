package price

import "testing"

// TestText: an amount an hour with or without a currency is read as it is written, and nothing else is.
func TestText(t *testing.T) {
	for text, want := range map[string]Hourly{"": {}, "2": {PerHour: 2}, " 98.32  USD ": {98.32, "USD"}, "1e2 EUR": {100, "EUR"}} {
		var p Hourly
		if err := p.UnmarshalText([]byte(text)); err != nil || p != want {
			t.Errorf("%q is %v, %v, want %v", text, p, err, want)
		}
	}
	for _, text := range []string{"0", "-1 USD", "USD", "USD 3", "inf", "NaN EUR", "3 USD an hour", "3 dollarsandcents"} {
		if err := new(Hourly).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a price", text)
		}
	}
}
