package hardware

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// machine answers commands by a part of them; a text that begins with "fails: " is one that is
// printed by a command that ends with an error. What it does not know is not there.
type machine map[string]string

func (m machine) ask(argv ...string) (string, error) {
	line := strings.Join(argv, " ")
	for part, text := range m {
		if !strings.Contains(line, part) {
			continue
		}
		if text, fails := strings.CutPrefix(text, "fails: "); fails {
			return text, errors.New("ended with status 2")
		}
		return text, nil
	}
	return "", ErrNoTool
}

// told is what is said of devices and processes.
func (in Inventory) told() (out []string) {
	for _, f := range in.Devices {
		out = append(out, strings.TrimSuffix(f.Name+", "+f.Details(), ", "))
	}
	for _, h := range in.Holders {
		out = append(out, h.Text())
	}
	return out
}

const (
	withReasons = "0, GPU-a0, NVIDIA GB10, [N/A], [N/A], 580.95.05, 3003, [Requested functionality has been deprecated], [Requested functionality has been deprecated], [N/A], [N/A], [N/A], 0x0000000000000001\n" +
		"1, GPU-a1, NVIDIA A100-SXM4-80GB, 81920, 81000, 580.95.05, 1410, 1200, 1410, 300.00, 400.00, Disabled, 0x0000000000000062\n"
	twoParts = "0, GPU-a0, NVIDIA A100-SXM4-80GB, 81920, [N/A], 570.86.15, 1410, 1410, 1410, 400.00, 400.00, Enabled\n"
	partList = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-a0)\n" +
		"  MIG 3g.40gb     Device  0: (UUID: MIG-dc34c2fd-4bd7-52ad-a6d0-645dcd1794e4)\n" +
		"  MIG 1g.10gb     Device  1: (UUID: MIG-ec4c3916-65fa-5948-b9b5-9f21a2ddfcc0)\n" +
		"  MIG 1c.1g.10gb+me Device  2: (UUID: MIG-GPU-a0/9/0)\n"
	partQuery = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<gpu id="00000000:07:00.0">
		<mig_devices>
			<mig_device><index>0</index><fb_memory_usage><total>40192 MiB</total><used>25 MiB</used><free>40167 MiB</free></fb_memory_usage></mig_device>
			<mig_device><index>1</index><fb_memory_usage><total>9728 MiB</total><used>9000 MiB</used><free>728 MiB</free></fb_memory_usage></mig_device>
		</mig_devices>
		<uuid>GPU-a0</uuid>
	</gpu>
	<gpu id="00000000:08:00.0"><mig_devices>None</mig_devices><uuid>GPU-a1</uuid></gpu>
</nvidia_smi_log>`
	driverText = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@host)  Tue Jan  7 17:35:12 PST 2025\n" +
		"GCC version:  gcc version 12.2.0 (GCC)\n" +
		"Model: \t\t NVIDIA H100 PCIe\nIRQ:   \t\t 58\nGPU UUID: \t GPU-4c7d\nBus Location: \t 0000:07:00.0\nGPU Firmware: \t 580.65.06\n" +
		"Model: \t\t NVIDIA H100 PCIe\nGPU UUID: \t GPU-????????-????-????-????-????????????\n"
	amdStatic = `{"gpu_data": [
 {"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0x6F1F0A2B3C4D5E6F"}, "vram": {"type": "HBM3", "size": {"value": 196592, "unit": "MB"}},
  "driver": {"name": "amdgpu", "version": "6.12.12"}, "limit": {"ppt0": {"max_power_limit": {"value": 750, "unit": "W"}, "socket_power_limit": {"value": 600, "unit": "W"}}, "ppt1": {"max_power_limit": "N/A"}}},
 {"gpu": 1, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "N/A"}, "vram": {"size": {"value": 192, "unit": "GB"}}, "driver": "N/A", "limit": {"max_power": {"value": 750, "unit": "W"}, "socket_power": {"value": 0, "unit": "W"}}}]}`
	amdMetric = `[{"gpu": 0, "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 121344, "unit": "MB"}}, "clock": {"gfx_0": {"clk": {"value": 132, "unit": "MHz"}, "max_clk": {"value": 2100, "unit": "MHz"}}}},
 {"gpu": 1, "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": "N/A"}}]`
	amdList    = `[{"gpu": 0, "bdf": "0000:05:00.0", "hip_id": 1, "hip_uuid": "GPU-6f1f0a2b3c4d5e6f"}, {"gpu": 1, "hip_id": 0, "hip_uuid": "GPU-b0"}]`
	amdProcess = `[{"gpu": 0, "process_list": [{"process_info": {"name": "python3.12", "pid": 41, "memory_usage": {"gtt_mem": {"value": 0, "unit": "B"}, "vram_mem": {"value": 2147483648, "unit": "B"}}}},
  {"process_info": {"name": "N/A", "pid": "42", "mem_usage": {"value": 3, "unit": "GB"}}}]},
 {"gpu": 1, "process_list": [{"process_info": {"name": "python3.12", "pid": 41, "memory_usage": {"vram_mem": {"value": 2147483648, "unit": "B"}}}}]},
 {"gpu": 2, "process_list": [{"process_info": "No running processes detected"}]}]`
	rocm = `WARNING: low power
{"card0": {"Card Series": "AMD Instinct MI300X OAM", "Unique ID": "0xab", "VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "2147483648", "Max Graphics Package Power (W)": "750.0"}, "system": {"Driver version": "6.8.5", "PID77": "python3, 1, 2147483648, 0, 0", "PID78": "idle, 1, 0, 0, 0"}}`
	npuTable = `+------------------------------------------------------------------------------------------------+
| npu-smi 25.2.0                   Version: 25.2.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 4     910B3               | OK            | 93.6        40                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          59356/ 65536         |
+===========================+===============+====================================================+
| 5     910B3               | OK            | 90.7        37                0    / 0             |
| 0                         | 0000:02:00.0  | 0           0    / 0          3161 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 4       0                 | 2759218       | VLLMWorker_DP            | 56293                   |
+===========================+===============+====================================================+
| No running processes found in NPU 5                                                            |
+===========================+===============+====================================================+
`
	npuPairs = `| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
| 0     Ascend910           | OK            | 178.5       36                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          3416 / 65536         |
| 0     Ascend910           | OK            | -           36                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 0           0    / 0          3195 / 65536         |
| NPU     Chip              | Process id    | Process name       | Process memory(MB)    | Process id in container |
| 0       1                 | 18966         |                    | 2330                  | 12                      |
`
)

// What the tools of each platform print, in the forms that they have had; what they do not tell
// is missing.
func TestInventory(t *testing.T) {
	for _, tt := range []struct {
		name    string
		of      func(Ask) (Inventory, error)
		machine machine
		told    []string
		untold  string
	}{
		{"a driver of today", NVIDIA, machine{"clocks_event_reasons.active": withReasons, "--query-compute-apps": "GPU-a0, 41, python3, 70000\nGPU-a0, 42, [Not Found], [N/A]\nGPU-a0, [N/A], [N/A], 5\n"},
			[]string{"NVIDIA GB10, driver 580.95.05, clock up to 3003 MHz",
				"NVIDIA A100-SXM4-80GB, 80.0 GiB, driver 580.95.05, clock up to 1410 MHz, clock set to 1200 MHz, where 1410 MHz is usual, clocks lowered by heat, a setting, power cap 300 W, where 400 W is usual",
				"process 41 (python3) holds 70000 MiB of device GPU-a0", "process 42 holds memory of device GPU-a0"}, ""},
		{"an H200 with a llama-server, as recorded", NVIDIA, machine{"clocks_event_reasons.active": "0, GPU-d94714fd-0368-fc32-68ad-d78f83e9c5f2, NVIDIA H200, 143771, 130732, 580.159.04, 1980, 1980, 1980, 700.00, 700.00, Disabled, 0x0000000000000000\n",
			"--query-compute-apps": "GPU-d94714fd-0368-fc32-68ad-d78f83e9c5f2, 572, llama-server, 12416\n"},
			[]string{"NVIDIA H200, 140.4 GiB, driver 580.159.04, clock up to 1980 MHz, power cap 700 W", "process 572 (llama-server) holds 12416 MiB of device GPU-d94714fd-0368-fc32-68ad-d78f83e9c5f2"}, ""},
		{"an older driver", NVIDIA, machine{"clocks_event_reasons": `fails: Field "clocks_event_reasons.active" is not a valid field to query.`, "clocks_throttle_reasons.active": withReasons, "--query-compute-apps": ""},
			[]string{"NVIDIA GB10, driver 580.95.05, clock up to 3003 MHz",
				"NVIDIA A100-SXM4-80GB, 80.0 GiB, driver 580.95.05, clock up to 1410 MHz, clock set to 1200 MHz, where 1410 MHz is usual, clocks lowered by heat, a setting, power cap 300 W, where 400 W is usual"}, ""},
		{"no processes told", NVIDIA, machine{"--query-gpu": twoParts, "--query-compute-apps": "fails: x"},
			[]string{"NVIDIA A100-SXM4-80GB, 80.0 GiB, driver 570.86.15, clock up to 1410 MHz, power cap 400 W, divided by MIG"}, "other processes on the devices are not known: ended with status 2"},
		{"divided", NVIDIA, machine{"--query-gpu": twoParts, "-L": partList, "-q -x": partQuery, "--query-compute-apps": ""},
			[]string{"NVIDIA A100-SXM4-80GB, 80.0 GiB, driver 570.86.15, clock up to 1410 MHz, power cap 400 W, divided by MIG into 1 x 1c.1g.10gb+me and 1 x 1g.10gb and 1 x 3g.40gb"}, ""},
		{"no nvidia-smi", NVIDIA, machine{"/proc/driver/nvidia/version": driverText},
			[]string{"NVIDIA H100 PCIe, driver 580.65.06", "NVIDIA H100 PCIe, driver 580.65.06"},
			"the NVIDIA driver is loaded and nvidia-smi is not on PATH: the devices' memory, clocks and power caps, and other processes on them, are not known"},
		{"amd-smi", AMD, machine{"amd-smi static": "[WARN] x\n" + amdStatic, "amd-smi metric": amdMetric, "amd-smi list -e": amdList, "amd-smi process": amdProcess},
			[]string{"AMD Instinct MI300X, 192.0 GiB", "AMD Instinct MI300X, 192.0 GiB, driver 6.12.12, clock up to 2100 MHz, power cap 600 W, where 750 W is usual",
				"process 41 (python3.12) holds 2048 MiB", "process 42 holds 3072 MiB of device 1"}, ""},
		{"amd-smi static alone", AMD, machine{"amd-smi static": amdStatic, "amd-smi process": "fails: no"},
			[]string{"AMD Instinct MI300X, 192.0 GiB, driver 6.12.12, power cap 600 W, where 750 W is usual", "AMD Instinct MI300X, 192.0 GiB"},
			"other processes on the devices are not known: ended with status 2"},
		{"rocm-smi", AMD, machine{"rocm-smi": rocm},
			[]string{"AMD Instinct MI300X OAM, 192.0 GiB, driver 6.8.5, power cap 750 W", "process 77 (python3) holds 2048 MiB"}, ""},
		{"an amd-smi that fails", AMD, machine{"amd-smi static": "fails: no", "rocm-smi": rocm},
			[]string{"AMD Instinct MI300X OAM, 192.0 GiB, driver 6.8.5, power cap 750 W", "process 77 (python3) holds 2048 MiB"}, ""},
		{"some of a machine's NPUs", Ascend, machine{"npu-smi info": npuTable},
			[]string{"Ascend 910B3, 64.0 GiB, driver 25.2.0", "Ascend 910B3, 64.0 GiB, driver 25.2.0", "process 2759218 (VLLMWorker_DP) holds 56293 MiB of device 0"}, ""},
		{"NPUs of two chips", Ascend, machine{"npu-smi info": npuPairs},
			[]string{"Ascend910, 64.0 GiB, driver 24.1.rc2", "Ascend910, 64.0 GiB, driver 24.1.rc2", "process 18966 holds 2330 MiB of device 1"}, ""},
	} {
		in, err := tt.of(tt.machine.ask)
		if err != nil || !slices.Equal(in.told(), tt.told) || in.Untold != tt.untold {
			t.Errorf("%s: %v\n%s\n%s", tt.name, err, strings.Join(in.told(), "\n"), in.Untold)
		}
		if _, err := tt.of(machine{}.ask); !errors.Is(err, ErrNoTool) {
			t.Errorf("%s, no tool: %v", tt.name, err)
		}
	}
	for name, text := range map[string]string{"nvidia-smi": "Failed to initialize NVML: Driver/library version mismatch\n", "columns": "0, GPU-a0\n", "index": strings.Replace(twoParts, "0,", "x,", 1)} {
		if in, err := NVIDIA(machine{"nvidia-smi": text}.ask); err == nil {
			t.Errorf("%s: %+v", name, in)
		}
	}
	for name, of := range map[string]func(Ask) (Inventory, error){"amd-smi static": AMD, "rocm-smi": AMD, "npu-smi": Ascend} {
		if in, err := of(machine{name: "driver not initialized"}.ask); err == nil || errors.Is(err, ErrNoTool) {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
}

// Devices are picked by index, by UUID and by the UUIDs of their parts, which have their own
// memory; a device whose parts are not told stands for them.
func TestPick(t *testing.T) {
	in, err := NVIDIA(machine{"--query-gpu": twoParts, "-L": partList, "-q -x": partQuery, "--query-compute-apps": "GPU-a0, 41, python3, 9000\n"}.ask)
	if err != nil {
		t.Fatal(err)
	}
	picked, missing := in.Pick([]string{"MIG-ec4c", "0", "GPU-a0", "MIG-GPU-a0/9/0", "MIG-0", "1", "GPU-b"})
	var got []string
	for _, f := range picked {
		got = append(got, f.Name+" "+f.UUID)
	}
	const whole = "NVIDIA A100-SXM4-80GB"
	want := []string{whole + " MIG 1g.10gb MIG-ec4c3916-65fa-5948-b9b5-9f21a2ddfcc0", whole + " GPU-a0", whole + " GPU-a0", whole + " MIG 1c.1g.10gb+me MIG-GPU-a0/9/0"}
	if !slices.Equal(got, want) || !slices.Equal(missing, []string{"MIG-0", "1", "GPU-b"}) {
		t.Fatalf("picked %q, missing %q", got, missing)
	}
	small, me := picked[0], picked[3]
	if small.MemoryMiB != 9728 || small.FreeMiB == nil || *small.FreeMiB != 728 || me.MemoryMiB != 10240 || me.FreeMiB != nil || !small.HeldBy(in.Holders[0]) {
		t.Errorf("%+v\n%+v", small, me)
	}
	in, err = NVIDIA(machine{"--query-gpu": twoParts, "--query-compute-apps": ""}.ask)
	if picked, missing = in.Pick([]string{"MIG-77"}); err != nil || len(picked) != 1 || !picked[0].MIG || missing != nil {
		t.Errorf("without a list %+v, %q, %v", picked, missing, err)
	}
	// amd-smi counts by place on the bus, and processes are shown the devices in another order.
	in, err = AMD(machine{"amd-smi static": amdStatic, "amd-smi metric": amdMetric, "amd-smi list -e": amdList, "amd-smi process": amdProcess}.ask)
	if picked, _ = in.Pick([]string{"1", "GPU-6f1f"}); err != nil || len(picked) != 2 || picked[0].FreeMiB == nil || *picked[0].FreeMiB != 196592-121344 || picked[1].UUID != picked[0].UUID {
		t.Errorf("%+v, %v", picked, err)
	}
}

// No text makes a reader panic, or gives figures that no device has.
func FuzzFound(f *testing.F) {
	for _, text := range []string{withReasons, partList, partQuery, driverText, amdStatic, amdMetric, amdProcess, rocm, npuTable, npuPairs, "GPU-a0, 41, python3, 70000\n",
		"processor\t: 0\nmodel name\t: AMD EPYC 9654\nMemTotal:       16777216 kB\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, of := range []func(Ask) (Inventory, error){NVIDIA, AMD, Ascend} {
			in, _ := of(func(...string) (string, error) { return text, nil })
			more, _ := of(machine{"--query-gpu": twoParts, "-L": partList, "-q": text, "--query-compute-apps": text, "/proc": text, "amd-smi static": amdStatic, "amd-smi": text}.ask)
			for _, d := range append(in.Devices, more.Devices...) {
				for _, d := range append(d.Parts, d) {
					if !(d.MemoryMiB >= 0 && d.ClockMHz >= 0 && d.PowerW >= 0) || d.FreeMiB != nil && !(*d.FreeMiB >= 0) || strings.Contains(d.Details(), "NaN") {
						t.Errorf("%+v", d)
					}
				}
			}
			for _, h := range append(in.Holders, more.Holders...) {
				if !(h.MiB >= 0) {
					t.Errorf("%+v", h)
				}
			}
		}
		if name, whole := ParseHost(text); !strings.HasPrefix(whole, name) {
			t.Errorf("%q is no part of %q", name, whole)
		}
	})
}
