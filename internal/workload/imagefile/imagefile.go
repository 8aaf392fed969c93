// Package imagefile reads the files of images that rows of a dataset name.
//
//	files := imagefile.Set{Dir: "rows"}
//	url, err := files.URL("cat.png") // "data:image/png;base64,..."
//
// Its own package because requests, which package workload makes, carry URLs alone.
package imagefile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"perflab/internal/input"
	"perflab/internal/workload/picture"
)

// most is the size of a file that is read.
const most = 64 << 20

// Set turns the images of a dataset's rows into URLs, reading each file once.
type Set struct {
	Dir   string                   // of the dataset, beside which they lie
	At    string                   // directory that has them under their Name in place of that; "": they are where the rows say
	Found func(image, path string) // told of each file, which is not read then; nil: they are read

	read map[string]string
}

// Name is what the file of an image is called on another machine: a row's path may lead out of every directory.
func Name(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:16])
}

// URL is the image itself if it is a URL already, else a data: URL of the file.
func (s *Set) URL(image string) (string, error) {
	for _, scheme := range []string{"data:", "http://", "https://"} {
		if strings.HasPrefix(image, scheme) {
			return image, nil
		}
	}
	path := image
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	if s.Found != nil {
		s.Found(image, path)
		return image, nil
	}
	if s.At != "" {
		path = filepath.Join(s.At, Name(image))
	}
	if url, ok := s.read[path]; ok {
		return url, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file", path) // a device may never end
	}
	content, err := input.File(path, most)
	if err != nil {
		return "", err // names the path
	}
	kind := picture.Kind(content)
	if kind == "" {
		return "", fmt.Errorf("%s is no PNG, JPEG, WebP or GIF file", path)
	}
	if s.read == nil {
		s.read = map[string]string{}
	}
	s.read[path] = picture.URL(kind, content)
	return s.read[path], nil
}
