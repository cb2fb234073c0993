package claude

import (
	"bytes"
	"encoding/json"
	"os"
)

// entry is a line of the CLI's transcript. Only lines with an id are part of the conversation.
type entry struct {
	Type       string `json:"type"`
	ID         string `json:"uuid"`
	Attachment struct {
		Type string `json:"type"`
		Call string `json:"toolUseID"`
	} `json:"attachment"`
}

// endWithMarker lets a transcript end with the marker of the deferred call. If it ends with the
// result of another call of the same message, the CLI closes the turn before it makes the deferred
// call, and tells the model that its result is missing.
func endWithMarker(path, call string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var last entry
	var marker []byte
	for line := range bytes.Lines(text) {
		var e entry
		if json.Unmarshal(line, &e) != nil || e.ID == "" {
			continue
		}
		last = e
		if e.Attachment.Type == "hook_deferred_tool" && e.Attachment.Call == call {
			marker = line
		}
	}
	if last.Type != "user" || marker == nil {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(marker, &members); err != nil {
		return err
	}
	for name, value := range map[string]string{"uuid": newSession(), "parentUuid": last.ID} {
		if members[name], err = json.Marshal(value); err != nil {
			return err
		}
	}
	line, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, append(line, '\n')...), 0o600)
}
