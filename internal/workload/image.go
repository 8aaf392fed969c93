package workload

import (
	"fmt"

	"perflab/internal/stat"
	"perflab/internal/workload/picture"
)

// maxImages bounds the images of one request.
const maxImages = 1000

// syntheticImages are the made-up images of one request, as data: URLs.
func syntheticImages(s Spec, index int) []string {
	all, _ := picture.ParseSizes(s.RandomImageSize) // Validate has seen the error
	out := make([]string, s.RandomImages)
	for i := range out {
		out[i] = picture.Made(stat.Stream(s.Seed, fmt.Sprintf("image %d %d", index, i)), all)
	}
	return out
}
