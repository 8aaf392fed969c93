package launch

import (
	"errors"
	"os"
)

// Main does nothing: launches are not supervised on this system.
func Main() {}

func supervise(folder, string, int, []string, *os.File) (int, error) {
	return 0, errors.New("on Windows nothing can be launched that outlives its server: use perflab tune or perflab bench in a terminal, or perflab serve under WSL")
}

func reap(int) bool { return true }
