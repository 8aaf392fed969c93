package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// chatMessage is a message of the chat API.
type chatMessage struct {
	Role    string      `json:"role"`
	Content chatContent `json:"content"`
}

// chatContent is a text, or a list of parts of text and images.
type chatContent struct {
	text   string
	images []string
}

// UnmarshalJSON reads both forms; the texts of parts are joined by line ends.
func (c *chatContent) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) || string(data) == "null" {
		return json.Unmarshal(data, &c.text)
	}
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image *struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("content must be a string or a list of parts with text or image_url")
	}
	var texts []string
	for i, p := range parts {
		switch {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type == "image_url" && p.Image != nil && p.Image.URL != "":
			c.images = append(c.images, p.Image.URL)
		default:
			return fmt.Errorf("content[%d] has type %q: a part is a text or an image_url with a url", i, p.Type)
		}
	}
	c.text = strings.Join(texts, "\n")
	return nil
}
