package result

// Imported says where a run came from that another client measured. Its
// figures are those of its file, by the definitions of that client
// (Summary.Definitions); a figure that the file lacks is ours, from the calls,
// where the file has calls.
type Imported struct {
	Client  string   `json:"client"`            // "vllm bench serve", "guidellm"
	Version string   `json:"version,omitempty"` // of the client, where the file tells
	Format  string   `json:"format"`            // of the file: see interop.Formats
	File    string   `json:"file"`              // base name
	Line    int      `json:"line,omitzero"`     // of the block or object, from 1
	End     int      `json:"end_line,omitzero"`
	Section []string `json:"section,omitempty"` // headings above a block, outermost first
	Labels  Labels   `json:"labels,omitempty"`  // what the file says of the run besides its figures

	// Other is what the file has of the run and no figure of ours stands for, by
	// its label there.
	Other map[string]string `json:"other,omitempty"`

	// Rounding is half a unit of the last digit that the file has of a figure,
	// by metric: any value that near prints so. A figure that is not here is exact.
	Rounding map[string]float64 `json:"rounding,omitempty"`

	// Definitions are those of Summary.Definitions, in a file that has the calls
	// and no summary.
	Definitions map[string]Definition `json:"definitions,omitempty"`

	// Lacks are families and figures of which the file's calls tell too little.
	Lacks []string `json:"lacks,omitempty"`
}

// Labels are facts found around the figures, as text.
type Labels map[string]string

// Keys of labels that have a meaning to us; a file's own metadata may add others.
const (
	LabelEngine        = "engine"            // vllm, sglang, trtllm, ... as found
	LabelEngineVersion = "engine_version"    // "v0.11.0"
	LabelHardware      = "hardware"          // "8 x NVIDIA A100 SXM 80GB GPUs on a single node."
	LabelGPUs          = "gpus"              // how many, where the text says so
	LabelNodes         = "nodes"             // how many, where the text says so
	LabelBenchCommand  = "benchmark_command" // the client's command line, where one is shown for this block
	LabelDataset       = "dataset"           // "sharegpt", "random"
	LabelCase          = "case"              // comment or caption of the block: "random 32K input"
	LabelRole          = "role"              // "baseline", "optimized"
	LabelRate          = "request_rate"      // as the file has it: "inf", "8"; absent: not recorded
	LabelLimit         = "max_concurrency"   // "none" where the file or its command tells that there was none
	LabelFailed        = "failed"            // what the file says of failures, when it is no count
)
