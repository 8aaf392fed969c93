package science

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	if *only == "none" {
		t.Skip()
	}
	var ls []Landscape
	for _, l := range Suite() {
		if strings.Contains(l.Name, *only) {
			ls = append(ls, l)
		}
	}
	begun := time.Now()
	c, err := Compare(ls, Entrants(), Setup{Launches: 25, Marks: []int{5, 10, 15, 20, 25}}, 2, func(s Standing) {
		fmt.Println(s.Landscape.Name, time.Since(begun))
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(os.Stdout, c.Markdown())
	for _, n := range c.Names {
		for _, s := range c.Short(n) {
			fmt.Println(n, s)
		}
	}
}
