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
	if c.Schema != "" && c.Schema != Schema {
		return c, fmt.Errorf("the file's schema is %q: this version reads %s", c.Schema, Schema)
	}
	_, err := c.Constants()
	return c, err
}

// Shipped is the calibration that is part of the program.
func Shipped() (Calibration, error) { return Parse(sim.Shipped()) }
