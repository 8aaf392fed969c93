package science

import (
	_ "embed"
	"encoding/json"
	"sync"

	"perflab/internal/calib"
	"perflab/internal/sim"
)

//go:embed ground.json
var groundJSON []byte

// ground are the constants that landscapes are made over and that studies predict by.
// They do not follow the shipped calibration: tables of different versions of the program
// are of the same landscapes.
var ground = sync.OnceValue(func() *sim.Constants {
	believed := beliefs()
	c, err := believed.Constants()
	if err != nil {
		panic("science: embedded ground.json: " + err.Error())
	}
	return c
})

// beliefs are those constants as the calibration that a measured run corrects.
var beliefs = sync.OnceValue(func() calib.Calibration {
	var t struct {
		What string    `json:"what"`
		Sets []sim.Set `json:"sets"`
	}
	if err := json.Unmarshal(groundJSON, &t); err != nil {
		panic("science: embedded ground.json: " + err.Error())
	}
	return calib.Calibration{Source: "the ground of the landscapes", Sets: t.Sets}
})
