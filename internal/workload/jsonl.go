package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"perflab/internal/token"
	"perflab/internal/workload/imagefile"
)

// jsonlKeys are what a row of a custom dataset may have.
const jsonlKeys = "prompt or messages, output_tokens, system, images, documents, model, tools, tool_choice, response_format, fields"

// jsonlRow is one request of a custom dataset: a prompt, or the messages of a
// chat that ends with the user's, and what goes with it.
type jsonlRow struct {
	Prompt    *string       `json:"prompt"`
	Messages  []chatMessage `json:"messages"`
	Output    *int          `json:"output_tokens"`
	System    string        `json:"system"`
	Images    []string      `json:"images"` // of the last user message: URLs, or files beside the dataset
	Documents []string      `json:"documents"`
	Model     string        `json:"model"`

	Tools          json.RawMessage            `json:"tools"`
	ToolChoice     json.RawMessage            `json:"tool_choice"`
	ResponseFormat json.RawMessage            `json:"response_format"`
	Fields         map[string]json.RawMessage `json:"fields"` // merged into the body
}

// jsonl is a custom dataset: a request a line, with all that may go with it.
func jsonl() dataset {
	return dataset{
		name: "jsonl", group: groupFile,
		params: []param{
			keepOrder, noRepeats,
			{key: "output_len", help: "output tokens of rows that name none"},
		},
		read:  func(f *os.File, s Spec, _ promptBuilder) (source, error) { return readJSONL(f, s) },
		hint:  `: a file with one {"prompt": "...", "output_tokens": 100} per line`,
		title: func(s Spec) string { return ofFile("Custom dataset", s) },
	}
}

// readJSONL reads a custom dataset. It keeps the prompts in memory, and the
// images that are files.
func readJSONL(f io.Reader, s Spec) (source, error) {
	src := source{drops: dropCounts{}, estimated: true}
	var prompts []string
	var extras []*Request // nil: nothing beside the prompt
	files := &imagefile.Set{Dir: filepath.Dir(s.Path), At: s.ImagesAt}
	err := eachLine(f, func(line []byte) error {
		src.read++
		var j jsonlRow
		if err := strict(line, &j, jsonlKeys); err != nil {
			return err
		}
		q, err := j.request(files)
		if err != nil {
			return err
		}
		r := row{input: q.tokens(), output: s.OutputLen, documents: len(q.Documents)}
		if j.Output != nil {
			r.output = *j.Output
			if r.output < 1 || r.output > maxTokens {
				return fmt.Errorf("output_tokens %d must be from 1 to %d", r.output, maxTokens)
			}
		}
		if token.Count(q.Prompt) == 0 && q.Images == nil {
			src.drops["with an empty prompt"]++
			return nil
		}
		src.rows = append(src.rows, r)
		prompts = append(prompts, q.Prompt)
		extras = append(extras, j.extra(q, &src))
		return nil
	})
	if err != nil {
		return source{}, err
	}
	src.fill = func(i int, r *Request) {
		if x := extras[i]; x != nil {
			r.System, r.History, r.Images, r.Documents, r.Model, r.Fields = x.System, x.History, x.Images, x.Documents, x.Model, x.Fields
		}
	}
	return sample(s, src, prompts, shuffled(s, len(src.rows))), nil
}

// jsonlImages are the files of images that a dataset's rows name.
func jsonlImages(s Spec) ([]File, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []File
	seen := map[string]bool{}
	files := &imagefile.Set{Dir: filepath.Dir(s.Path), Found: func(image, path string) {
		if !seen[image] {
			seen[image] = true
			out = append(out, File{Key: FileImages, Path: path, Name: imagefile.Name(image)})
		}
	}}
	err = eachLine(f, func(line []byte) error {
		var j jsonlRow
		if err := strict(line, &j, jsonlKeys); err != nil {
			return err
		}
		_, err := j.request(files)
		return err
	})
	return out, err
}

// extra is the request if it has anything beside its prompt, and notes for src
// what only a chat API can send.
func (j jsonlRow) extra(q Request, src *source) *Request {
	if q.System != "" || q.History != nil || q.Images != nil {
		src.chat = "a dataset with system prompts, history or images"
	} else if q.Documents == nil && q.Model == "" && q.Fields == nil {
		return nil
	}
	return &q
}

// request is what the row says to send.
func (j jsonlRow) request(files *imagefile.Set) (q Request, err error) {
	q = Request{System: j.System, Documents: j.Documents, Model: j.Model}
	images := j.Images
	switch {
	case j.Prompt != nil && j.Messages != nil:
		return q, errors.New("a row has a prompt or messages, not both")
	case j.Prompt != nil:
		q.Prompt = *j.Prompt
	case j.Messages == nil:
		return q, errors.New(`a row needs a prompt (a string) or messages (the last with the role "user")`)
	default:
		parts, err := q.chat(j.Messages)
		if err != nil {
			return q, err
		}
		images = append(parts, images...)
	}
	for i, image := range images {
		url, err := files.URL(image)
		if err != nil {
			return q, fmt.Errorf("image %d: %w", i+1, err)
		}
		q.Images = append(q.Images, url)
	}
	q.Fields, err = j.fields()
	return q, err
}

// chat fills system, history and prompt from a list of messages and returns
// the images of the last one.
func (q *Request) chat(list []chatMessage) ([]string, error) {
	if len(list) > 0 && list[0].Role == "system" {
		if q.System != "" {
			return nil, errors.New("a row has system or a system message in messages, not both")
		}
		q.System, list = list[0].Content.text, list[1:]
	}
	if len(list)%2 == 0 {
		return nil, errors.New(`messages must go user, assistant, user, and end with the role "user"`)
	}
	last := len(list) - 1
	for i, m := range list {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return nil, fmt.Errorf("messages: role %q stands where %q is due: they must go user, assistant, user", m.Role, want)
		}
		if i < last {
			if m.Content.images != nil {
				return nil, errors.New("messages: only the last one may have images")
			}
			q.History = append(q.History, Message{m.Role, m.Content.text})
		}
	}
	q.Prompt = list[last].Content.text
	return list[last].Content.images, nil
}

// tokens counts all text of the prompt.
func (q Request) tokens() int {
	n := token.Count(q.System) + token.Count(q.Prompt)
	for _, m := range q.History {
		n += token.Count(m.Content)
	}
	for _, d := range q.Documents {
		n += token.Count(d)
	}
	return n
}

// ownFields are those of the body that a row sets in other ways, or that the
// client needs as they are.
var ownFields = []string{"messages", "prompt", "model", "stream", "stream_options", "max_tokens", "max_completion_tokens"}

// fields joins the row's fields and the keys that have a name of their own.
func (j jsonlRow) fields() (json.RawMessage, error) {
	all := j.Fields
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for _, key := range ownFields {
		if _, ok := all[key]; ok {
			return nil, fmt.Errorf("fields has %q, which it may not set: a row has keys of its own for what it sends", key)
		}
	}
	for key, value := range map[string]json.RawMessage{"tools": j.Tools, "tool_choice": j.ToolChoice, "response_format": j.ResponseFormat} {
		if value == nil {
			continue
		}
		if _, ok := all[key]; ok {
			return nil, fmt.Errorf("a row has %s itself or in fields, not both", key)
		}
		all[key] = value
	}
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}
