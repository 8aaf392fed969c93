package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"perflab/internal/field"
	"perflab/internal/input"
	"perflab/internal/stat"
)

// maxImages bounds the images of one request, maxSide their size in pixels.
const (
	maxImages = 1000
	maxSide   = 8192
)

// sizes are the smallest and the largest width and height of images, and the share of
// the images that are of them.
type sizes struct {
	low, high image.Point
	share     float64
}

// parseImageSizes reads sizes WxH or WxH-WxH, several with their shares: 256x256:0.5,1280x720:0.5.
// "" is nothing.
func parseImageSizes(text string) ([]sizes, error) {
	if text == "" {
		return nil, nil
	}
	var all []sizes
	total := 0.0
	for part := range strings.SplitSeq(text, ",") {
		z := sizes{share: 1}
		size, share, shared := strings.Cut(part, ":")
		if shared != strings.Contains(text, ",") {
			return nil, field.Errorf("random_image_size", "%q: several sizes have shares, as 256x256:0.5,1280x720:0.5, and one has none", text)
		}
		if shared {
			var err error
			if z.share, err = strconv.ParseFloat(share, 64); err != nil || !(z.share > 0 && z.share <= maxShare) {
				return nil, field.Errorf("random_image_size", "%q: the share %q is no number above 0", text, share)
			}
		}
		var err error
		if z.low, z.high, err = parseImageSize(size); err != nil {
			return nil, err
		}
		total += z.share
		all = append(all, z)
	}
	for i := range all {
		all[i].share /= total
	}
	return all, nil
}

// maxShare keeps the sum of shares a number.
const maxShare = 1e9

// parseImageSize reads WxH or WxH-WxH.
func parseImageSize(text string) (low, high image.Point, err error) {
	left, right, both := strings.Cut(text, "-")
	if !both {
		right = left
	}
	for _, side := range []struct {
		text string
		to   *image.Point
	}{{left, &low}, {right, &high}} {
		w, h, _ := strings.Cut(side.text, "x")
		var errW, errH error
		side.to.X, errW = strconv.Atoi(w)
		side.to.Y, errH = strconv.Atoi(h)
		if errW != nil || errH != nil || min(side.to.X, side.to.Y) < 1 || max(side.to.X, side.to.Y) > maxSide {
			return low, high, field.Errorf("random_image_size", "%q: write 512x512 or 256x256-1024x1024, up to %d", text, maxSide)
		}
	}
	if low.X > high.X || low.Y > high.Y {
		return low, high, field.Errorf("random_image_size", "%q: the first size is larger than the second", text)
	}
	return low, high, nil
}

// drawSize is one of several sizes, by their shares; one alone is not drawn, so that
// its images are those that it had before there were several.
func drawSize(rng *rand.Rand, all []sizes) sizes {
	if len(all) == 1 {
		return all[0]
	}
	at := rng.Float64()
	for _, z := range all {
		if at -= z.share; at < 0 {
			return z
		}
	}
	return all[len(all)-1]
}

// syntheticImages are the made-up images of one request, as data: URLs.
func syntheticImages(s Spec, index int) []string {
	all, _ := parseImageSizes(s.RandomImageSize) // Validate has seen the error
	out := make([]string, s.RandomImages)
	for i := range out {
		rng := stat.Stream(s.Seed, fmt.Sprintf("image %d %d", index, i))
		z := drawSize(rng, all)
		out[i] = dataURL("image/jpeg", picture(rng,
			z.low.X+rng.IntN(z.high.X-z.low.X+1), z.low.Y+rng.IntN(z.high.Y-z.low.Y+1)))
	}
	return out
}

func dataURL(kind string, content []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(content)
}

// picture is a JPEG of a colour gradient with random squares of 8 pixels over
// it: unlike any other, so that no server finds it in a cache, and cheap to
// encode, since each square is one block of the format.
func picture(rng *rand.Rand, w, h int) []byte {
	img := image.NewYCbCr(image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio420)
	blocks := make([]byte, (w+7)/8)
	for y := range h {
		if y%8 == 0 {
			for i := range blocks {
				blocks[i] = byte(rng.IntN(128))
			}
		}
		line := img.Y[y*img.YStride:][:w]
		shade := byte(64 * y / h)
		for x := range line {
			line[x] = blocks[x/8] + shade
		}
	}
	blue, red := byte(64+rng.IntN(128)), byte(64+rng.IntN(128))
	for i := range img.Cb {
		img.Cb[i], img.Cr[i] = blue, red
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 75}); err != nil {
		panic("workload: encode an image: " + err.Error()) // a Buffer takes all, and the size is within JPEG's
	}
	return b.Bytes()
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
	kind := imageKind(content)
	if kind == "" {
		return "", fmt.Errorf("%s is no PNG, JPEG, WebP or GIF file", path)
	}
	f.read[path] = dataURL(kind, content)
	return f.read[path], nil
}

// imageKind tells formats apart by how their files begin; "" for others.
func imageKind(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "image/gif"
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}
