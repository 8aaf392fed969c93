package docker

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/deploy"
)

// defaultShm is /dev/shm of an engine with GPUs whose settings say nothing of it. It is a
// limit and takes no memory by itself; Docker's own 64 MB end collective libraries.
const defaultShm = "16g"

// WithDefaults are the settings with what engines that have so many GPUs need and Docker does
// not give by itself.
func (s Settings) WithDefaults(gpus int) Settings {
	if s.Image != "" && gpus > 0 && s.ShmSize == "" && s.IPC == "" {
		s.ShmSize = defaultShm
	}
	return s
}

// leastShm is what NCCL and Python engines were seen to need between ranks.
const leastShm = 1 << 30

// Remarks are sentences on what will fail or cost time when containers with these settings
// serve a model on so many GPUs: shared memory, locked memory, the model's files and the token
// for them. Of a container that runs already nothing is known.
func (s Settings) Remarks(model string, gpus int) (out []string) {
	if s.Image == "" {
		return nil
	}
	s = s.WithDefaults(gpus)
	if shm, err := parseSize(s.ShmSize); err == nil && gpus > 1 && s.IPC != "host" && shm < leastShm {
		out = append(out, fmt.Sprintf("/dev/shm of the containers is %s, and the ranks of a tensor parallel engine want 1 GB and more there: set shm_size: %s, or ipc: host", shmText(s.ShmSize), defaultShm))
	}
	if gpus > 1 && s.Ulimits != nil && !s.hasUlimit("memlock") {
		out = append(out, "ulimits do not name memlock, and NCCL locks memory for InfiniBand and RoCE adapters: add memlock=-1")
	}
	if !deploy.FromHub(model) {
		return out
	}
	kept := s.keepsModels()
	if !kept {
		out = append(out, fmt.Sprintf("no mount keeps the files of models, so that each launch downloads %s again: mount ~/.cache/huggingface:/root/.cache/huggingface, or a volume there", model))
	}
	if deploy.Gated(model) && !s.hasToken() {
		where := "the download will be refused"
		if kept {
			where = "the download will be refused unless the mounted files have it"
		}
		out = append(out, fmt.Sprintf("%s is gated, and the containers get no token: %s; export HF_TOKEN, and name it in env", model, where))
	}
	return out
}

func shmText(size string) string {
	if size == "" {
		return "64 MB, Docker's default"
	}
	return size
}

func (s Settings) hasUlimit(name string) bool {
	return slices.ContainsFunc(s.Ulimits, func(u string) bool { return strings.HasPrefix(u, name+"=") })
}

// keepsModels reports whether a mount holds the directory into which the hub's client downloads.
func (s Settings) keepsModels() bool {
	dir := deploy.HubCache(s.environment())
	for _, text := range s.Mounts {
		b, err := parseMount(text)
		if err != nil {
			continue
		}
		if deploy.Holds(b.target, dir) {
			return true
		}
		if s.User != "" && strings.Contains(b.target, "huggingface") { // another user's home, which the image knows
			return true
		}
	}
	return false
}

// hasToken reports whether the containers' environment has a token of the hub.
func (s Settings) hasToken() bool {
	return slices.ContainsFunc(s.environment(), func(e string) bool {
		k, v, _ := strings.Cut(e, "=")
		return v != "" && (k == "HF_TOKEN" || k == "HUGGING_FACE_HUB_TOKEN")
	})
}
