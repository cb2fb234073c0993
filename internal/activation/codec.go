package activation

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/jsonlite"
)

// Encode returns the stored form of the record.
func (r *Record) Encode() []byte {
	o := jsonlite.NewObject()
	o.String("id", r.ID)
	// the relative path is stored separately
	if node, ok := strings.CutSuffix(r.Address, ";"+r.RelPath); ok {
		o.String("node", node)
	} else {
		o.String("address", r.Address)
	}
	o.String("visit", r.Activation)
	o.String("rel", r.RelPath)
	o.String("key", r.Key)
	o.String("kind", r.Kind)
	o.Raw("data", r.Data)
	o.Raw("state", r.State)
	o.Bool("composite", r.Composite)
	o.String("parent", r.Parent)
	o.String("supersedes", r.Supersedes)
	o.Raw("before", r.Before)
	o.String("refused", r.Refused)
	o.String("status", string(r.Status))
	o.Int("seq", int64(r.Seq))
	o.Raw("answer", r.Answer)
	o.Bool("fresh", r.Undelivered)
	o.String("fits", r.AnswerType)
	o.String("by", r.Attestation.By)
	if at := r.Attestation.At; !at.IsZero() {
		o.String("at", at.UTC().Format(time.RFC3339Nano))
	}
	o.String("auth", r.Attestation.Auth)
	o.String("rule", r.Attestation.Rule)
	return o.End()
}

// Decode reads what Encode wrote from the part of that name. It ignores unknown members.
func (r *Record) Decode(part string, in *jsonlite.Reader) {
	r.part = part
	var node string
	in.Object(func(name string) {
		switch name {
		case "id":
			r.ID = in.String()
		case "node":
			node = in.String()
		case "address":
			r.Address = in.String()
		case "visit":
			r.Activation = in.String()
		case "rel":
			r.RelPath = in.String()
		case "key":
			r.Key = in.String()
		case "kind":
			r.Kind = in.String()
		case "data":
			r.Data = json.RawMessage(in.Raw())
		case "state":
			r.State = json.RawMessage(in.Raw())
		case "composite":
			r.Composite = in.Bool()
		case "parent":
			r.Parent = in.String()
		case "supersedes":
			r.Supersedes = in.String()
		case "before":
			r.Before = json.RawMessage(in.Raw())
		case "refused":
			r.Refused = in.String()
		case "status":
			r.Status = Status(in.String())
		case "seq":
			r.Seq = int(in.Int())
		case "answer":
			r.Answer = json.RawMessage(in.Raw())
		case "fresh":
			r.Undelivered = in.Bool()
		case "fits":
			r.AnswerType = in.String()
		case "by":
			r.Attestation.By = in.String()
		case "at":
			r.Attestation.At, _ = time.Parse(time.RFC3339Nano, in.String())
		case "auth":
			r.Attestation.Auth = in.String()
		case "rule":
			r.Attestation.Rule = in.String()
		default:
			in.Raw()
		}
	})
	if node != "" {
		r.Address = Join(node, r.RelPath)
	}
}
