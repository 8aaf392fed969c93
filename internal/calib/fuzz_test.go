package calib

import (
	"encoding/json"
	"os"
	"testing"

	"perflab/internal/sim"
)

// FuzzParse: a calibration file that is taken can be written and is then taken again.
func FuzzParse(f *testing.F) {
	f.Add(sim.Shipped())
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"schema":"perflab.calibration/1","constants":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(b); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
	})
}

// FuzzReadObservations: what is taken has an id each, and can be written and taken again.
func FuzzReadObservations(f *testing.F) {
	data, err := os.ReadFile("testdata/published.json")
	if err != nil {
		f.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		f.Fatal(err)
	}
	for _, one := range all[:min(8, len(all))] {
		f.Add([]byte("[" + string(one) + "]"))
	}
	f.Add([]byte(`[{"id":"a","load":{"requests":1e99}}]`))
	f.Add([]byte("[]\n]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		obs, err := ReadObservations(data)
		if err != nil {
			return
		}
		b, err := json.Marshal(obs)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadObservations(b); len(obs) > 0 && err != nil {
			t.Fatalf("%v in %s", err, b)
		}
	})
}
