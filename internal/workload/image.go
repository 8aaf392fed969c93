package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"perflab/internal/input"
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

// imageFiles turns the images of a dataset's rows into URLs, reading each file
// once.
type imageFiles struct {
	dir   string // of the dataset, beside which they lie
	at    string // directory that has them under the names of imageName in place of that; "": they are where the rows say
	read  map[string]string
	found func(image, path string) // told of each file, which is not read then; nil: they are read
}

// imageName is what the file of an image is called on another machine: a row's path may lead out of every directory.
func imageName(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:16])
}

// url is the image itself if it is a URL already, else a data: URL of the file.
func (f imageFiles) url(image string) (string, error) {
	for _, scheme := range []string{"data:", "http://", "https://"} {
		if strings.HasPrefix(image, scheme) {
			return image, nil
		}
	}
	path := image
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	if f.found != nil {
		f.found(image, path)
		return image, nil
	}
	if f.at != "" {
		path = filepath.Join(f.at, imageName(image))
	}
	if url, ok := f.read[path]; ok {
		return url, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file", path) // a device may never end
	}
	content, err := input.File(path, mostImage)
	if err != nil {
		return "", err // names the path
	}
	kind := picture.Kind(content)
	if kind == "" {
		return "", fmt.Errorf("%s is no PNG, JPEG, WebP or GIF file", path)
	}
	f.read[path] = picture.URL(kind, content)
	return f.read[path], nil
}
