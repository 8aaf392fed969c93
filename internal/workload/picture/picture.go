// Package picture makes images up and tells images of files apart.
//
//	sizes, err := picture.ParseSizes("512x512")
//	url := picture.Made(rand.New(rand.NewPCG(1, 2)), sizes)
package picture

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"strconv"
	"strings"
)

// MaxSide bounds the sides of an image, in pixels.
const MaxSide = 8192

// Sizes are the smallest and the largest width and height of images, and the share of
// the images that are of them.
type Sizes struct {
	low, high image.Point
	share     float64
}

// ParseSizes reads sizes WxH or WxH-WxH, several with their shares: 256x256:0.5,1280x720:0.5.
// "" is nothing.
func ParseSizes(text string) ([]Sizes, error) {
	if text == "" {
		return nil, nil
	}
	var all []Sizes
	total := 0.0
	for part := range strings.SplitSeq(text, ",") {
		z := Sizes{share: 1}
		size, share, shared := strings.Cut(part, ":")
		if shared != strings.Contains(text, ",") {
			return nil, fmt.Errorf("%q: several sizes have shares, as 256x256:0.5,1280x720:0.5, and one has none", text)
		}
		if shared {
			var err error
			if z.share, err = strconv.ParseFloat(share, 64); err != nil || !(z.share > 0 && z.share <= maxShare) {
				return nil, fmt.Errorf("%q: the share %q is no number above 0", text, share)
			}
		}
		var err error
		if z.low, z.high, err = parseSize(size); err != nil {
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

// parseSize reads WxH or WxH-WxH.
func parseSize(text string) (low, high image.Point, err error) {
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
		if errW != nil || errH != nil || min(side.to.X, side.to.Y) < 1 || max(side.to.X, side.to.Y) > MaxSide {
			return low, high, fmt.Errorf("%q: write 512x512 or 256x256-1024x1024, up to %d", text, MaxSide)
		}
	}
	if low.X > high.X || low.Y > high.Y {
		return low, high, fmt.Errorf("%q: the first size is larger than the second", text)
	}
	return low, high, nil
}

// drawSize is one of several sizes, by their shares; one alone is not drawn, so that
// its images are those that it had before there were several.
func drawSize(rng *rand.Rand, all []Sizes) Sizes {
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

// Made is an image as a data: URL, of one of several sizes.
func Made(rng *rand.Rand, all []Sizes) string {
	z := drawSize(rng, all)
	return URL("image/jpeg", picture(rng, z.low.X+rng.IntN(z.high.X-z.low.X+1), z.low.Y+rng.IntN(z.high.Y-z.low.Y+1)))
}

// URL is content as a data: URL.
func URL(kind string, content []byte) string {
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
		panic("picture: encode an image: " + err.Error()) // a Buffer takes all, and the size is within JPEG's
	}
	return b.Bytes()
}

// Kind tells formats apart by how their files begin; "" for others.
func Kind(b []byte) string {
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
