package arch

import (
	"slices"
	"strings"
)

// titleNoise are words of titles that tell no part from another.
var titleNoise = []string{"nvidia", "amd", "intel", "huawei", "ascend", "instinct", "geforce", "rtx"}

// AcceleratorsIn returns the known devices that a text on hardware can mean, as
// "8 x NVIDIA A100 SXM 80GB on one node": one where it names a part, several
// where it leaves open which ("NVIDIA H100"), none where it names no known one.
func AcceleratorsIn(text string) []Accelerator {
	if a, err := LookupAccelerator(strings.TrimSpace(text)); err == nil {
		return []Accelerator{a}
	}
	have := titleWords(text)
	var named []Accelerator // by the word that tells the model
	whole := false          // one of them has its title in the text as a whole
	for _, a := range devices() {
		words := titleWords(a.Title)
		if slices.ContainsFunc(modelWords(words), func(w string) bool { return slices.Contains(have, w) }) {
			named = append(named, a)
			whole = whole || missing(words, have) == 0
		}
	}
	byDriver := !whole && slices.ContainsFunc(have, tellsBuild)
	switch {
	case byDriver:
		named = slices.DeleteFunc(named, func(a Accelerator) bool { return !a.Named(text) })
	case !whole:
		return named
	}
	// A part named in full, or best by a driver, stands for itself, and another model beside it stays.
	return slices.DeleteFunc(named, func(a Accelerator) bool {
		words := titleWords(a.Title)
		return slices.ContainsFunc(named, func(b Accelerator) bool {
			other := titleWords(b.Title)
			lacks := missing(other, have)
			return lacks < missing(words, have) && (lacks == 0 || byDriver) && slices.Equal(modelWords(other), modelWords(words))
		})
	})
}

// tellsBuild reports whether a word is of a driver's name, which tells by memory or socket what
// people call SXM or PCIe ("H100 80GB HBM3", "A100-SXM4-80GB").
func tellsBuild(word string) bool {
	return strings.HasPrefix(word, "hbm") || len(word) == 4 && strings.HasPrefix(word, "sxm")
}

// modelWords are the words that name a model and no variant of it: the first
// with a digit, and what its product is called ("DGX Spark").
func modelWords(words []string) []string {
	var out []string
	if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "0123456789") }); i >= 0 {
		out = append(out, words[i])
	}
	if i := slices.Index(words, "dgx"); i >= 0 && i+1 < len(words) {
		out = append(out, words[i+1])
	}
	return out
}

// missing counts the words that a text lacks.
func missing(words, have []string) (n int) {
	for _, w := range words {
		if !slices.Contains(have, w) && w != "dgx" {
			n++
		}
	}
	return n
}

// titleWords are the telling words of a title or text in lower case, "80 GB" as
// one.
func titleWords(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	})
	var out []string
	for _, w := range words {
		switch n := len(out); {
		case slices.Contains(titleNoise, w):
		case (w == "gb" || w == "gib") && n > 0 && strings.Trim(out[n-1], "0123456789") == "":
			out[n-1] += "gb"
		default:
			out = append(out, w)
		}
	}
	return out
}

// Named reports whether a device that its driver calls so can be this one. Names agree on how
// a device is built: an H100 for PCIe has 0.6 of the bandwidth of one on SXM, and an H200 NVL
// has other links than an H200. Sizes of memory are left to whoever knows it.
func (a Accelerator) Named(name string) bool {
	words, have := titleWords(a.Title), titleWords(name)
	models := modelWords(words)
	return build(words) == build(have) && slices.ContainsFunc(have, func(w string) bool {
		if w = strings.TrimPrefix(w, "ascend"); a.Platform == NPU { // 910B1 to 910B4 are clocked otherwise, and called so
			w = w[:min(len(w), len(models[0]))]
		}
		return slices.Contains(models, w)
	})
}

// build is how a device is built, by the words of its name. SXM, and what there is in one build
// alone, go without a word for it; the H100 for PCIe was called by its memory first.
func build(words []string) string {
	for _, w := range words {
		switch w {
		case "pcie", "hbm2e":
			return "pcie"
		case "nvl":
			return w
		}
	}
	return ""
}
