package claude

import (
	"encoding/json"
	"strings"

	"github.com/fermata-go/fermata"
)

// NewApproval returns the approval request about a call of a tool, as people see it. They can edit
// the arguments.
func NewApproval(tool string, input json.RawMessage) (fermata.ApprovalRequest, error) {
	q := fermata.ApprovalRequest{Action: tool, Args: input, ArgsSchema: argsSchema(input)}
	var described struct {
		Description string `json:"description"`
	}
	if json.Unmarshal(input, &described) == nil {
		q.Summary = firstLine(described.Description)
	}
	var err error
	q.Digest, err = q.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: q.Args})
	return q, err
}

// firstLine returns the first line of a text, at most 200 characters of it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	letters := []rune(strings.TrimSpace(line))
	return string(letters[:min(len(letters), 200)])
}
