package picture

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/jpeg" // decodes what was made
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMade: an image is a JPEG of a size within the bounds, the same for the same draw and no other's.
func TestMade(t *testing.T) {
	sizes, err := ParseSizes("20x30-24x40")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i := range 20 {
		made := Made(rand.New(rand.NewPCG(1, uint64(i))), sizes)
		if again := Made(rand.New(rand.NewPCG(1, uint64(i))), sizes); again != made {
			t.Errorf("image %d is another one when it is made again", i)
		}
		if seen[made]++; seen[made] > 1 {
			t.Errorf("image %d is like one before", i)
		}
		data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(made, "data:image/jpeg;base64,"))
		if err != nil {
			t.Fatal(err)
		}
		c, format, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil || format != "jpeg" || Kind(data) != "image/jpeg" || c.Width < 20 || c.Width > 24 || c.Height < 30 || c.Height > 40 {
			t.Errorf("image %d: %s of %d x %d, %s, %v", i, format, c.Width, c.Height, Kind(data), err)
		}
	}
}

func BenchmarkPicture(b *testing.B) {
	for _, side := range []int{512, 1024} {
		b.Run(fmt.Sprint(side), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			n := 0
			for b.Loop() {
				n = len(picture(rng, side, side))
			}
			b.ReportMetric(float64(n), "bytes/image")
		})
	}
}
