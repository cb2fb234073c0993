package visibility

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// Masks reports whether sensitive values of a request are masked for a caller. The agent that asked
// knows them.
func Masks(me authn.Principal, doc *desk.Request) bool {
	return doc != nil && len(doc.Requirement.Sensitive) > 0 && !doc.IsAskedBy(me.Viewer())
}

// Masked returns a request without its sensitive values. Of a request whose document cannot be
// decrypted it is unknown what is sensitive.
func Masked(me authn.Principal, q executor.RequestView, r api.Request) api.Request {
	if q.Unreadable && q.Request == nil {
		r.Data = nil
		if r.Decision != nil {
			r.Decision.Answer = nil
		}
	}
	if !Masks(me, q.Request) {
		return r
	}
	r.Masked = q.Request.SensitivePointers(r.Data)
	r.Data, _ = q.Request.MaskData(r.Data)
	if r.Decision != nil {
		r.Decision.Answer = q.Request.MaskAnswer(r.Decision.Answer)
		maskConditions(r.Decision.Conditions)
	}
	if r.Activity != nil && r.Activity.Edit != nil {
		r.Activity.Edit.Args = q.Request.MaskArgs(r.Activity.Edit.Args)
	}
	if r.Activity != nil {
		for _, v := range r.Activity.Votes {
			maskConditions(v.Conditions)
		}
	}
	return r
}

// maskConditions masks the condition of an approval: it may contain a sensitive value.
func maskConditions(c *fermata.Conditions) {
	if c != nil && c.OnlyIf != "" {
		c.OnlyIf = desk.Masked
	}
}

// MaskConstraints masks the values of a grant's constraints on sensitive arguments, and the texts
// of sensitive values in the others.
func MaskConstraints(args json.RawMessage, q executor.RequestView) json.RawMessage {
	var constraints map[string]map[string]any
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.UseNumber()
	if decoder.Decode(&constraints) != nil {
		return args
	}
	for pointer, constraint := range constraints {
		hides := func(p string) bool { return desk.Overlap(pointer, p) }
		if !slices.ContainsFunc(q.Request.Requirement.Sensitive, hides) {
			continue
		}
		for name := range constraint {
			if name != "op" {
				constraint[name] = desk.Masked
			}
		}
	}
	out, err := json.Marshal(constraints)
	if err != nil { // was decoded from JSON
		return args
	}
	return desk.MaskTexts(out, q.Request.SensitiveTexts(q.Data))
}
