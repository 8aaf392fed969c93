package calib

import (
	"bytes"
	"encoding/json"
	"fmt"

	"perflab/internal/sim"
)

// Parse reads a calibration file.
func Parse(data []byte) (Calibration, error) {
	var c Calibration
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("no calibration file: %w", err)
	}
	if c.Schema == firstSchema {
		c.Errors = renewed(c.Errors)
	}
	if c.Schema != "" && c.Schema != Schema && c.Schema != firstSchema {
		return c, fmt.Errorf("the file's schema is %q: this version reads %s", c.Schema, Schema)
	}
	_, err := c.Constants()
	return c, err
}

// renewed are errors of a file of the first schema, which knew them by accelerator: of the
// kind of runs that the file was fitted to, nothing is new.
func renewed(old []Error) (out []Error) {
	for _, e := range old {
		e.New, e.Accelerator = NothingNew, ""
		all := e
		all.Engine = ""
		out = append(out, e, all)
	}
	return out
}

// Shipped is the calibration that is part of the program.
func Shipped() (Calibration, error) { return Parse(sim.Shipped()) }
