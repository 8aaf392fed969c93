package hardware

import (
	"slices"
	"strings"
	"testing"
)

// The environment's pool, as the drivers read it.
func TestVisible(t *testing.T) {
	cuda, hip := []string{"CUDA_VISIBLE_DEVICES"}, []string{"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}
	for _, tt := range []struct {
		variables []string
		env       map[string]string
		by        string
		devices   Devices // nil: all
		wrong     string
	}{
		{cuda, nil, "CUDA_VISIBLE_DEVICES", nil, ""},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": "4,5"}, "CUDA_VISIBLE_DEVICES", Devices{"4", "5"}, ""},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": " 5 , 4 "}, "CUDA_VISIBLE_DEVICES", Devices{"5", "4"}, ""},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES", Devices{}, ""},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": "2,-1,3"}, "CUDA_VISIBLE_DEVICES", Devices{"2"}, ""},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, "CUDA_VISIBLE_DEVICES", Devices{}, ""},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-5a1c,MIG-77"}, "CUDA_VISIBLE_DEVICES", Devices{"GPU-5a1c", "MIG-77"}, ""},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": "4,,5"}, "", nil, `"" names no device`},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": "all"}, "", nil, `"all" names no device`},
		{cuda, map[string]string{"CUDA_VISIBLE_DEVICES": "4,4"}, "", nil, "device 4 is named twice"},
		{cuda, map[string]string{"HIP_VISIBLE_DEVICES": "1"}, "CUDA_VISIBLE_DEVICES", nil, ""},
		{hip, map[string]string{"HIP_VISIBLE_DEVICES": "1"}, "HIP_VISIBLE_DEVICES", Devices{"1"}, ""},
		{hip, map[string]string{"CUDA_VISIBLE_DEVICES": "1"}, "CUDA_VISIBLE_DEVICES", Devices{"1"}, ""},
		{hip, map[string]string{"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "1"}, "", nil, "are both set in the environment"},
		{hip, map[string]string{"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "6,7"}, "HIP_VISIBLE_DEVICES", Devices{"1"}, ""},
		{hip, map[string]string{"HIP_VISIBLE_DEVICES": "2", "ROCR_VISIBLE_DEVICES": "6,7"}, "", nil, "HIP_VISIBLE_DEVICES of the environment names device 2 of the 2 that ROCR_VISIBLE_DEVICES leaves"},
	} {
		p, err := Visible(tt.variables, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		switch {
		case tt.wrong != "":
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%v: %v, want %q", tt.env, err, tt.wrong)
			}
		case err != nil || p.Variable != tt.by || !slices.Equal(p.Devices, tt.devices) || p.Inherited != (tt.devices != nil):
			t.Errorf("%v: %+v, %v", tt.env, p, err)
		}
	}
	p, err := Visible(hip, func(name string) (string, bool) {
		v, ok := map[string]string{"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "6,7"}[name]
		return v, ok
	})
	if err != nil || p.Machine("1") != "7" {
		t.Errorf("the machine names it %q, %v", p.Machine("1"), err)
	}
}

// What is wanted of a pool, and what it does not show.
func TestTake(t *testing.T) {
	free, shown, none := Pool{Variable: "V"}, Pool{Variable: "V", Devices: Devices{"4", "5"}, Inherited: true}, Pool{Variable: "V", Devices: Devices{}, Inherited: true}
	for _, tt := range []struct {
		pool   Pool
		wanted Devices
		n      int
		got    Devices
		wrong  string
	}{
		{free, nil, 2, nil, ""},
		{free, Devices{"6", "7"}, 2, Devices{"6", "7"}, ""},
		{shown, nil, 2, Devices{"4", "5"}, ""},
		{shown, nil, 1, Devices{"4"}, ""},
		{shown, Devices{"5"}, 1, Devices{"5"}, ""},
		{shown, nil, 3, nil, "V of the environment shows devices 4, 5, and 3 are needed: show more, or ask for fewer"},
		{none, nil, 1, nil, "V of the environment shows no device, and 1 is needed: show more, or ask for fewer"},
		{shown, Devices{"0"}, 1, nil, "device 0 is wanted, and V of the environment shows devices 4, 5: name one of those, or change the variable"},
	} {
		got, err := tt.pool.Take(tt.wanted, tt.n)
		switch {
		case tt.wrong != "":
			if err == nil || err.Error() != tt.wrong {
				t.Errorf("%v of %v: %v, want %q", tt.wanted, tt.pool.Devices, err, tt.wrong)
			}
		case err != nil || !slices.Equal(got.Devices, tt.got):
			t.Errorf("%v of %v: %v, %v", tt.wanted, tt.pool.Devices, got.Devices, err)
		}
	}
}
