package workload

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// addModelAndImages gives a request its adapter, the same for all of a conversation k, and
// its images.
func (w *Workload) addModelAndImages(r *Request, k int) {
	s := &w.spec
	if n := len(s.LoraModules); n > 0 {
		pick := k % n
		if s.LoraAssignment == "random" {
			pick = stat.Stream(s.Seed, "lora "+strconv.Itoa(k)).IntN(n)
		}
		r.Model = s.LoraModules[pick]
	}
	if s.RandomImages == 0 {
		return
	}
	if made, ok := w.preparedImages.LoadAndDelete(r.Index); ok {
		r.Images = made.([]string)
		return
	}
	r.Images = s.images(r.Index)
}

// Prepare makes the images of the turn after r, some ten milliseconds of work,
// so that Next has them at hand.
func (w *Workload) Prepare(r Request) {
	if r.Session == 0 || w.spec.RandomImages == 0 {
		return
	}
	src, i, _ := w.row(r.Session - 1)
	if r.Turn+1 < len(src.conversations[i].turns) {
		w.preparedImages.Store(r.Index+1, w.spec.images(r.Index+1))
	}
}

// NeedsChat says what of the spec only a chat API can send: the path of a field
// and, where only that one does, its value; "" and "" for nothing.
func (s Spec) NeedsChat() (path, value string) {
	switch {
	case s.Dataset == "conversations":
		return "dataset_name", s.Dataset
	case s.RandomImages > 0:
		return "random_images", ""
	}
	return "", ""
}

// NeedsChat is Spec.NeedsChat, the rows of the dataset looked at: they have a
// value without a path.
func (w *Workload) NeedsChat() (path, value string) {
	if path, value = w.spec.NeedsChat(); path != "" {
		return path, value
	}
	return "", w.src.chat
}

// mixDefaults fills in how adapters are chosen and how large images are.
func (s Spec) mixDefaults() Spec {
	if len(s.LoraModules) > 0 {
		s.LoraAssignment = cmp.Or(s.LoraAssignment, "random")
	}
	if s.RandomImages > 0 {
		s.RandomImageSize = cmp.Or(s.RandomImageSize, "512x512")
	}
	return s
}

// mixFaults names what is wrong about adapters and images.
func (s Spec) mixFaults(d Spec) (faults []error) {
	if s.LoraAssignment != "" && len(s.LoraModules) == 0 {
		faults = append(faults, field.Errorf("lora_assignment", "applies with [lora_modules] only"))
	} else if a := d.LoraAssignment; a != "" && a != "random" && a != "round-robin" {
		faults = append(faults, unknown("lora_assignment", a, []string{"random", "round-robin"}))
	}
	if slices.Contains(s.LoraModules, "") {
		faults = append(faults, field.Errorf("lora_modules", "%s has an empty name", strings.Join(s.LoraModules, ",")))
	}
	if s.RandomImageSize != "" && s.RandomImages == 0 {
		faults = append(faults, field.Errorf("random_image_size", "applies with [random_images] only"))
	} else if _, err := parseImageSize(s.RandomImageSize); err != nil {
		faults = append(faults, err)
	}
	if s.RandomImages > 0 && d.Dataset != "random" && d.Dataset != "conversations" {
		faults = append(faults, field.Errorf("random_images", "applies to [dataset_name] random or conversations, not %s", d.Dataset))
	}
	return faults
}

// fingerprinted are the requests that a fingerprint covers: all, later turns
// among them, or the first thousand of an endless workload.
func (w *Workload) fingerprinted() iter.Seq[Request] {
	return func(yield func(Request) bool) {
		n := 0
		for r := range w.All() {
			if n++; w.more != nil && n > 1000 {
				return
			}
			for more := true; more; {
				if !yield(r) {
					return
				}
				var next Request
				if next, next.Due, more = w.Next(r, ""); more {
					r = next // the think time stands in for its due time
				}
			}
		}
	}
}
