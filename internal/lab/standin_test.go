package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/engine"
)

// Environment of the stand-ins, which a study gives them.
const (
	behaviourEnv = "LAB_ENGINE"  // one of behaviours; "": serves
	pidsEnv      = "LAB_PIDS"    // directory with one file a process that serves, or would, named by its id, of what devices it sees
	lacksEnv     = "LAB_LACKS"   // a flag that the help does not list and the parser refuses
	versionEnv   = "LAB_VERSION" // "": 0.11.0 of vLLM, 0.5.5 of SGLang
	extraEnv     = "LAB_EXTRA"   // a flag that the help lists and the catalogue does not
	noHelpEnv    = "LAB_NOHELP"  // the help cannot be had
	wattsEnv     = "LAB_WATTS"   // of each board, as nvidia-smi streams it; "": it cannot be asked
	onceEnv      = "LAB_DIES"    // file that is made when the first of them dies; the others live
)

// standIns are the programs that this test binary stands in for, when it is started
// under their names. There is no trtllm-serve.
var standIns = []string{"vllm", "python3", "llama-server"}

// TestMain lets this test binary stand in for engines, on the PATH before all others.
func TestMain(m *testing.M) {
	deploy.GuardMain()
	name := filepath.Base(os.Args[0])
	if name == "nvidia-smi" {
		standInSMI()
		return
	}
	if name == simulatorName {
		standInSim()
		return
	}
	if slices.Contains(standIns, name) {
		time.AfterFunc(2*time.Minute, func() { os.Exit(3) }) // one that a broken test leaves behind
		standIn(name)
		return
	}
	voidRetries = 40
	_ = flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))) // they wait for most of their time
	flag.Parse()
	if good == "" {
		panic("the good study of package study is not there")
	}
	dir, err := os.MkdirTemp("", "lab-engines")
	if err != nil {
		panic(err)
	}
	link(dir, standIns...)
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} { // by which a model that is in no cache would be absent
		os.Unsetenv(name)
	}
	os.Setenv("HF_HUB_CACHE", filepath.Join(dir, "hub")) // no tokenizer of this machine measures a test's prompts
	os.Setenv("GORACE", "atexit_sleep_ms=0")             // the race detector else makes every exit take a second
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// link makes programs of this test binary.
func link(dir string, names ...string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			panic(err)
		}
	}
}

// standInSMI stands in for nvidia-smi on a machine of four GPUs, two and two linked.
func standInSMI() {
	switch {
	case slices.Contains(os.Args, "topo"):
		fmt.Print("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tNV4\tSYS\tSYS\t0-3\nGPU1\tNV4\t X \tSYS\tSYS\t0-3\nGPU2\tSYS\tSYS\t X \tNV4\t4-7\nGPU3\tSYS\tSYS\tNV4\t X \t4-7\n")
	case slices.Contains(os.Args, "-L"):
		for i := range 4 {
			fmt.Printf("GPU %d: NVIDIA H100 80GB HBM3 (UUID: GPU-%d)\n", i, i)
		}
	case strings.HasPrefix(os.Args[1], "--query-gpu=index,uuid,"):
		for i := range 4 {
			fmt.Printf("%d, GPU-%d, NVIDIA H100 80GB HBM3, 81559, 81007, 570.86.15, 1980, [N/A], [N/A], 700.00, 700.00, [N/A], 0x0000000000000001\n", i, i)
		}
	case strings.HasPrefix(os.Args[1], "--query-compute-apps="):
		fmt.Print("GPU-1, 4711, /usr/bin/python3, 1024\n")
	case os.Getenv(wattsEnv) != "": // busy boards, until nobody listens
		every, err := strconv.Atoi(os.Args[slices.Index(os.Args, "-lms")+1])
		for begun := time.Now(); err == nil && time.Since(begun) < time.Minute; time.Sleep(time.Duration(every) * time.Millisecond) {
			for i := range 4 {
				_, err = fmt.Printf("%s, %d, 90, 60000, 81559, %s, 1980, 2619, 60, 0x0000000000000004\n", time.Now().Format("2006/01/02 15:04:05.000"), i, os.Getenv(wattsEnv))
			}
		}
	default:
		os.Exit(1)
	}
}

// standIn is an engine: its version, its help, or its life.
func standIn(program string) {
	name := map[string]string{"vllm": "vllm", "python3": "sglang", "llama-server": "llamacpp"}[program]
	switch {
	case slices.Contains(os.Args, "-c") && name == "sglang":
		fmt.Println(cmp.Or(os.Getenv(versionEnv), "0.5.5"))
	case slices.Contains(os.Args, "--version") && name == "vllm":
		fmt.Println(cmp.Or(os.Getenv(versionEnv), "0.11.0"))
	case slices.Contains(os.Args, "--version"):
		fmt.Println("version: 7000 (abcdef0)")
	case slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "--help") }):
		if os.Getenv(noHelpEnv) != "" {
			fmt.Fprintln(os.Stderr, "ImportError: libcuda.so.1: cannot open shared object file")
			os.Exit(1)
		}
		printHelp(name)
	default:
		if err := runEngine(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// printHelp lists every flag of the catalogue but the one that is lacking.
func printHelp(name string) {
	e, err := engine.ByName(name)
	if err != nil {
		panic(err)
	}
	fmt.Println("usage: [options]\n\noptions:")
	if extra := os.Getenv(extraEnv); extra != "" {
		fmt.Printf("  %s\n", extra)
	}
	for _, f := range e.Flags() {
		if f.Flag != os.Getenv(lacksEnv) {
			fmt.Printf("  %s\n", strings.Join(append(append([]string{f.Flag}, f.Aliases...), f.Off...), ", "))
		}
	}
}

// endings are what engines that do not come up print, real lines of theirs, and the status
// that they end with.
var endings = map[string]struct {
	text string
	code int
}{
	"oom": {`(EngineCore_DP0 pid=41) ERROR 10-02 12:00:00 [core.py:708] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.03 GiB is free.
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}`, 1},
	"kv": {`(EngineCore_DP0 pid=41) ERROR 10-02 12:00:00 [core.py:708] ValueError: To serve at least one request with the models's max seq len (40960), (5.62 GiB KV cache is needed, which is larger than the available KV cache memory (3.05 GiB). Based on the available memory, the estimated maximum model length is 22208. Try increasing ` + "`gpu_memory_utilization` or decreasing `max_model_len`" + ` when initializing the engine.
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}`, 1},
	"heads":   {`ValueError: Total number of attention heads (32) must be divisible by tensor parallel size (5).`, 1},
	"flag":    {"usage: vllm serve [model_tag] [options]\nvllm: error: unrecognized arguments: --no-such-flag", 2},
	"kernel":  {`RuntimeError: CUDA error: no kernel image is available for execution on the device`, 1},
	"busy":    {`ValueError: Free memory on device (10.12/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.`, 1},
	"offline": {"requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries exceeded with url: /api\nhuggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache.", 1},
	"crash":   {`RuntimeError: something that nobody has seen before`, 1},
	"secret":  {"loading with HF_TOKEN=hf_abcdefghijklmnopqrstuvwx\nRuntimeError: cannot read https://user:hunter2hunter2@host.invalid/m with --api-key sk-abcdefghijklmnopqrstuvwx", 1},
}

// runEngine is an engine's life.
func runEngine() error {
	pids, behaviour := os.Getenv(pidsEnv), os.Getenv(behaviourEnv)
	if pids != "" {
		if err := os.WriteFile(filepath.Join(pids, strconv.Itoa(os.Getpid())), []byte(os.Getenv("CUDA_VISIBLE_DEVICES")), 0o644); err != nil {
			return err
		}
	}
	if lacks := os.Getenv(lacksEnv); lacks != "" && slices.Contains(os.Args, lacks) {
		fmt.Fprintf(os.Stderr, "usage: launch_server.py [-h]\nlaunch_server.py: error: unrecognized arguments: %s\n", lacks)
		os.Exit(2)
	}
	if e, ok := endings[behaviour]; ok {
		fmt.Fprintln(os.Stderr, e.text)
		os.Exit(e.code)
	}
	switch behaviour {
	case "taken":
		if first() {
			return errors.New("OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use")
		}
	case "hang":
		fmt.Println("INFO 10-02 12:00:00 [gpu_model_runner.py:2602] Starting to load model Qwen/Qwen3-8B...")
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	case "squatter": // it has the listener, and never answers
		select {}
	}
	return serveEngine(behaviour)
}

// first reports whether this process is the first to ask.
func first() bool {
	f, err := os.OpenFile(os.Getenv(onceEnv), os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// serveEngine answers on the port of its command line; a rank without one stays.
func serveEngine(behaviour string) error {
	if slices.Contains(os.Args, "--headless") {
		fmt.Println("node1:42:42 [0] NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0>")
		select {}
	}
	if slices.Contains(os.Args, "--nnodes") {
		fmt.Println("node0:42:42 [0] NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0>")
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[slices.Index(os.Args, "--port")+1])
	if err != nil {
		return err
	}
	fmt.Println("INFO 10-02 12:00:01 [kv_cache_utils.py:1087] GPU KV cache size: 322,560 tokens")
	fmt.Println("INFO:     Application startup complete.")
	var die func()
	switch {
	case behaviour == "oom-load":
		die = func() {
			fmt.Fprintln(os.Stderr, "ERROR 10-02 12:00:09 [async_llm.py:480] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.")
			os.Exit(1)
		}
	case behaviour == "dies", os.Getenv(onceEnv) != "" && behaviour == "" && first():
		die = func() { os.Exit(7) }
	case behaviour == "leak":
		if err := leak(l.(*net.TCPListener)); err != nil {
			return err
		}
	}
	if behaviour == "errors" {
		mux := http.NewServeMux()
		mux.Handle("/health", answer(nil))
		mux.Handle("/v1/models", answer(nil))
		mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "EngineCore encountered an issue", http.StatusInternalServerError)
		})
		return http.Serve(l, mux)
	}
	if behaviour == "queue" {
		return http.Serve(l, oneByOne(answer(nil), 20*time.Millisecond))
	}
	return http.Serve(l, answer(die))
}

// oneByOne has each generation wait for the one before it, and take a time.
func oneByOne(h http.Handler, each time.Duration) http.Handler {
	var free sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			free.Lock()
			time.Sleep(each)
			free.Unlock()
		}
		h.ServeHTTP(w, r)
	})
}

// leak starts a process that holds the listener and carries nothing by which it could be
// known for a part of the engine.
func leak(l *net.TCPListener) error {
	f, err := l.File()
	if err != nil {
		return err
	}
	defer f.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"vllm"}
	cmd.Env = []string{behaviourEnv + "=squatter", pidsEnv + "=" + os.Getenv(pidsEnv)}
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// answer is a server that answers each call in two events, whatever it counts in
// them: the work that was asked for. The fifth call is its end where die is given.
func answer(die func()) http.Handler {
	var calls atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"Qwen/Qwen3-14B"},{"id":"Qwen/Qwen3-32B"},{"id":"Qwen/Qwen3-8B"}]}`)
	})
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct{ Content string }
			Tokens   int `json:"max_completion_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) == 0 {
			http.Error(w, fmt.Sprintf("no request for a chat: %v", err), http.StatusBadRequest)
			return
		}
		if calls.Add(1) == 5 && die != nil {
			die()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(2 * time.Millisecond)
		}
		words := len(strings.Fields(asked.Messages[len(asked.Messages)-1].Content)) // of one token each
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", words, max(2, asked.Tokens))
	})
	return mux
}
