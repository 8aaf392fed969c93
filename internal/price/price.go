// Package price has what a deployment costs, as users write it and as files keep it.
//
//	var p price.Hourly
//	err := p.UnmarshalText([]byte("98.32 USD"))
//
// Deliberately absent: costs of tokens (package result), and what anybody charges.
package price

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Hourly is what a deployment costs, all of it. As text it is an amount an hour,
// with or without a currency: "98.32 USD".
type Hourly struct {
	PerHour  float64
	Currency string
}

// IsZero reports whether there is none.
func (p Hourly) IsZero() bool { return p == Hourly{} }

// String returns "98.32 USD", or "" for none.
func (p Hourly) String() string {
	if p.IsZero() {
		return ""
	}
	return strings.TrimSpace(strconv.FormatFloat(p.PerHour, 'f', -1, 64) + " " + p.Currency)
}

// MarshalText writes what UnmarshalText reads.
func (p Hourly) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// maxCurrency bounds the name of a currency, in bytes.
const maxCurrency = 8

// UnmarshalText reads an amount above 0 and the currency, in this order.
func (p *Hourly) UnmarshalText(text []byte) error {
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		*p = Hourly{}
		return nil
	}
	v, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) || len(fields) > 2 {
		return fmt.Errorf("price %q must be an amount above 0 an hour and its currency, as in 98.32 USD", text)
	}
	next := Hourly{PerHour: v}
	if len(fields) == 2 {
		next.Currency = fields[1]
	}
	if len(next.Currency) > maxCurrency {
		return fmt.Errorf("currency %q of the price is too long: write it as USD", next.Currency)
	}
	*p = next
	return nil
}
