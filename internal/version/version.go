// Package version says what this program is: its version and commit, what it was built by and
// for, and what it can do on this system.
//
//	info := version.Read()
//	fmt.Print(info.Text())
//
// Invariants: what is not known is empty, and Text says "unknown" and how to know it. Nothing
// runs and no file is read: everything stands in the program.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
)

// What a release build sets when it links (see the Makefile). Empty in other builds, of
// which Go itself keeps the commit where it may.
var (
	release  string // "v0.3.0", or what git describes: "v0.3.0-4-g9d72427"
	commit   string
	date     string // of the commit: "2026-11-26T09:45:58Z"
	modified string // "true": files differed from the commit
)

// Info is what is known of this program.
type Info struct {
	Version  string    `json:"version"`            // "(devel)" where nobody gave it one
	Commit   string    `json:"commit,omitempty"`   // of the source; "": not known
	Date     string    `json:"date,omitempty"`     // of that commit
	Modified *bool     `json:"modified,omitempty"` // files differed from it; nil: not known
	Go       string    `json:"go"`
	OS       string    `json:"os"`
	Arch     string    `json:"arch"`
	Features []Feature `json:"features"`
}

// Feature is something that not every build can do.
type Feature struct {
	Name   string `json:"name"`
	Here   bool   `json:"here"`
	Detail string `json:"detail"` // what it gives, or what there is in its place
}

// Read is what this program knows of itself.
func Read() Info {
	build, _ := debug.ReadBuildInfo() // nil where there is none
	info := of(build)
	info.Go, info.OS, info.Arch = runtime.Version(), runtime.GOOS, runtime.GOARCH
	info.Features = Features(runtime.GOOS)
	return info
}

// of joins what the linker was given with what Go keeps of the build.
func of(build *debug.BuildInfo) Info {
	info := Info{Version: release, Commit: commit, Date: date}
	if modified != "" {
		info.Modified = new(modified == "true")
	}
	if build != nil {
		info.Version = cmp.Or(info.Version, build.Main.Version)
		for _, s := range build.Settings {
			switch {
			case s.Key == "vcs.revision":
				info.Commit = cmp.Or(info.Commit, s.Value)
			case s.Key == "vcs.time":
				info.Date = cmp.Or(info.Date, s.Value)
			case s.Key == "vcs.modified" && info.Modified == nil:
				info.Modified = new(s.Value == "true")
			}
		}
	}
	info.Version = cmp.Or(info.Version, "(devel)")
	return info
}

// Features are what not every system's build can do, and whether that of a system can.
func Features(system string) []Feature {
	linux, unix := system == "linux", system != "windows"
	choose := func(here bool, name, detail, otherwise string) Feature {
		if here {
			return Feature{name, true, detail}
		}
		return Feature{name, false, otherwise}
	}
	return []Feature{
		choose(linux, "kernel time stamps", "tokens are stamped by the kernel as they arrive",
			"tokens are stamped when the program reads them, which is later on a busy machine; Linux has stamps by the kernel"),
		choose(linux, "exact send times", "a thread of its own waits for each request's instant",
			"requests are sent by Go's timers, about a millisecond late; Linux has exact ones"),
		choose(linux, "host telemetry", "processors, memory and other programs are read from /proc during a run",
			"there is no /proc: nothing is known of other programs that used the processors during a run"),
		choose(unix, "engines as processes", processText(linux), "engines are not started on Windows: measure a server that runs (bench), or start them from Linux or macOS"),
		choose(unix, "engines by ssh", "the system's ssh with a shared connection starts them on other machines",
			"ssh on Windows cannot share a connection: run perflab tune on Linux or macOS"),
		{"engines in containers", true, "through the Docker Engine API, no docker command is needed"},
		choose(unix, "simulated engines in studies", "perflab tune starts them as it starts real ones, no GPU is needed",
			"perflab tune does not start them on Windows: perflab sim, predict and studies with runtime predicted work"),
	}
}

func processText(linux bool) string {
	return "children of perflab, ended with it" + unless(linux, ", except where perflab is killed by SIGKILL: only Linux tells what is left")
}

// unless is a text where something does not hold.
func unless(holds bool, text string) string {
	if holds {
		return ""
	}
	return text
}

// Text is what a terminal shows.
func (i Info) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "perflab %s\n", i.Version)
	fmt.Fprintf(w, "commit\t%s\n", i.commitText())
	fmt.Fprintf(w, "date\t%s\n", cmp.Or(i.Date, "unknown"))
	fmt.Fprintf(w, "built by\t%s\n", i.Go)
	fmt.Fprintf(w, "built for\t%s/%s\n", i.OS, i.Arch)
	w.Flush()
	b.WriteString("\nOn this system:\n")
	for _, f := range i.Features {
		mark := "yes"
		if !f.Here {
			mark = "no"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Name, mark, f.Detail)
	}
	w.Flush() // a strings.Builder takes everything
	return b.String()
}

// commitText says too why a commit is not known: Go keeps it of a build, and of "go run" only
// where it is asked to.
func (i Info) commitText() string {
	switch {
	case i.Commit == "":
		return "unknown (go build in a clone keeps it; so does go run -buildvcs=true)"
	case i.Modified != nil && *i.Modified:
		return i.Commit + ", with changes that are not committed"
	}
	return i.Commit
}
