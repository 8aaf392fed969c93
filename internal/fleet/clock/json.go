package clock

import (
	"encoding/json"
	"math"
	"time"
)

// fitJSON is how a Fit is written. What is not known is not there.
type fitJSON struct {
	At        *float64 `json:"at_s,omitempty"`
	Offset    *float64 `json:"offset_ms,omitempty"`
	Bound     *float64 `json:"bound_ms,omitempty"`
	DriftPPM  float64  `json:"drift_ppm,omitzero"`
	Exchanges int      `json:"exchanges"`
	Least     *float64 `json:"least_round_trip_ms,omitempty"`
	Stepped   bool     `json:"stepped,omitzero"`
}

// known reports whether there is an offset.
func (f Fit) known() bool { return f.Exchanges > 0 && !f.Stepped }

// MarshalJSON writes a Fit with units in its keys.
func (f Fit) MarshalJSON() ([]byte, error) {
	w := fitJSON{Exchanges: f.Exchanges, Stepped: f.Stepped}
	if f.known() {
		w.At, w.Offset, w.Bound, w.Least = new(f.At.Seconds()), ms(f.Offset), ms(f.Bound), ms(f.Least)
		w.DriftPPM = math.Round(f.DriftPPM*1e3) / 1e3
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Fit) UnmarshalJSON(b []byte) error {
	var w fitJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*f = Fit{Exchanges: w.Exchanges, Stepped: w.Stepped, DriftPPM: w.DriftPPM}
	for _, v := range []struct {
		to   *time.Duration
		from *float64
		unit time.Duration
	}{{&f.At, w.At, time.Second}, {&f.Offset, w.Offset, time.Millisecond}, {&f.Bound, w.Bound, time.Millisecond}, {&f.Least, w.Least, time.Millisecond}} {
		if v.from != nil {
			*v.to = time.Duration(math.Round(*v.from * float64(v.unit)))
		}
	}
	return nil
}

func ms(d time.Duration) *float64 { return new(float64(d) / 1e6) }
