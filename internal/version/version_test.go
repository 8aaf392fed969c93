package version

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOf(t *testing.T) {
	kept := &debug.BuildInfo{
		Main: debug.Module{Version: "v0.2.1-0.20261126094558-9d7242768789+dirty"},
		Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "9d72427"}, {Key: "vcs.time", Value: "2026-11-26T09:45:58Z"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	for name, c := range map[string]struct {
		build  *debug.BuildInfo
		linked [4]string
		want   Info
	}{
		"nothing known":     {want: Info{Version: "(devel)"}},
		"go run":            {build: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, want: Info{Version: "(devel)"}},
		"go install @v":     {build: &debug.BuildInfo{Main: debug.Module{Version: "v0.3.0"}}, want: Info{Version: "v0.3.0"}},
		"go build":          {build: kept, want: Info{Version: kept.Main.Version, Commit: "9d72427", Date: "2026-11-26T09:45:58Z", Modified: new(true)}},
		"linked":            {linked: [4]string{"v0.3.0", "abc", "2026-01-02T03:04:05Z", "false"}, want: Info{Version: "v0.3.0", Commit: "abc", Date: "2026-01-02T03:04:05Z", Modified: new(false)}},
		"linked over build": {build: kept, linked: [4]string{"v0.3.0", "abc", "2026-01-02T03:04:05Z", "false"}, want: Info{Version: "v0.3.0", Commit: "abc", Date: "2026-01-02T03:04:05Z", Modified: new(false)}},
	} {
		release, commit, date, modified = c.linked[0], c.linked[1], c.linked[2], c.linked[3]
		if d := cmp.Diff(c.want, of(c.build)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	release, commit, date, modified = "", "", "", ""
}

func TestText(t *testing.T) {
	for want, info := range map[string]Info{
		"commit     unknown (go build in a clone":       {Version: "(devel)"},
		"date       unknown":                            {Version: "(devel)", Commit: "abc"},
		"commit     abc\n":                              {Version: "v1", Commit: "abc", Modified: new(false)},
		"commit     abc, with changes that are not c":   {Version: "v1", Commit: "abc", Modified: new(true)},
		"perflab v1\n":                                  {Version: "v1"},
		"built for  linux/arm64\n":                      {Version: "v1", OS: "linux", Arch: "arm64"},
		"kernel time stamps            no   tokens are": {Version: "v1", Features: Features("darwin")},
	} {
		if got := info.Text(); !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

// TestFeatures: each system has the same list, and what it lacks says what to do instead.
func TestFeatures(t *testing.T) {
	names := func(system string) (all []string, here int) {
		for _, f := range Features(system) {
			all = append(all, f.Name)
			if f.Detail == "" {
				t.Errorf("%s: %s says nothing", system, f.Name)
			}
			if f.Here {
				here++
			}
		}
		return all, here
	}
	linux, most := names("linux")
	mac, some := names("darwin")
	windows, few := names("windows")
	if d := cmp.Diff(linux, mac) + cmp.Diff(linux, windows); d != "" {
		t.Error(d)
	}
	if most != len(linux) || !(most > some && some > few && few > 0) {
		t.Errorf("Linux has %d of %d, macOS %d, Windows %d", most, len(linux), some, few)
	}
}
