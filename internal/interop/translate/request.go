package translate

import (
	"encoding/json"
	"strconv"
	"strings"

	"perflab/internal/redact"
)

// parse is strconv.ParseFloat.
func parse(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// headers gives headers of the form name:value, or name=value by its separator. One
// that is a secret is left out: it would be part of a command that others see.
func (d *draft) headers(separator string) {
	for _, word := range headerWords(d.facts["header"], separator) {
		name, value, ok := strings.Cut(word, separator)
		value = strings.TrimSpace(value)
		switch {
		case !ok || name == "":
			d.refuse("--header", "is no NAME"+separator+"VALUE")
		case strings.EqualFold(name, "authorization"):
			d.note("--header "+name, "perflab sends the key of OPENAI_API_KEY in this header: set it in the environment")
		case redact.Field(name, value) != value:
			d.note("--header "+name, "holds a secret and is not shown: add --header "+name+"=VALUE by hand")
		default:
			d.set("--header", name+"="+value)
		}
	}
}

// headerWords splits headers that were joined with blanks; values may hold blanks.
func headerWords(text, separator string) []string {
	var out []string
	for word := range strings.FieldsSeq(text) {
		if name, _, ok := strings.Cut(word, separator); len(out) > 0 && (!ok || name == "") {
			out[len(out)-1] += " " + word
			continue
		}
		out = append(out, word)
	}
	return out
}

// extras gives what is merged into the body of a request, from name:value or JSON.
func (d *draft) extras() {
	text := strings.TrimSpace(d.facts["extra"])
	if text == "" {
		return
	}
	body := map[string]any{}
	if json.Unmarshal([]byte(text), &body) != nil {
		for word := range strings.FieldsSeq(text) {
			name, value, ok := strings.Cut(word, ":")
			if !ok {
				d.refuse(d.of("extra"), "is no name:value: write them so, or as JSON")
				return
			}
			var v any = value
			if json.Unmarshal([]byte(value), &v) != nil {
				v = value
			}
			body[name] = v
		}
	}
	if v, ok := body["ignore_eos"]; ok {
		delete(body, "ignore_eos")
		if v == true {
			d.put("--ignore-eos", "", true)
		}
	}
	if len(body) == 0 {
		return
	}
	b, err := json.Marshal(body)
	if err != nil {
		d.refuse(d.of("extra"), "cannot be written as JSON")
		return
	}
	d.set("--extra-body", string(b))
}

// sharegptFile is the name of the file that clients download.
const sharegptFile = "ShareGPT_V3_unfiltered_cleaned_split.json"

// sharegpt gives the dataset of conversations.
func (d *draft) sharegpt(flag string) {
	d.set("--dataset-name", "sharegpt")
	path, ok := d.facts["path"]
	if !ok {
		path = sharegptFile
		d.note(flag, "perflab downloads nothing: put the file there, or say where it is")
	}
	d.set("--dataset-path", path)
}
