package requests

import (
	"encoding/json"

	"github.com/fermata-go/fermata/internal/safehtml"
)

// diffRow is one changed value.
type diffRow struct {
	Pointer string
	// Was and Is are nil if the value was added or removed.
	Was, Is json.RawMessage
}

// diffOf lists the changed values of two JSON values, down to members of objects.
func diffOf(was, is json.RawMessage) []diffRow {
	a, errA := safehtml.Parse(was)
	b, errB := safehtml.Parse(is)
	if errA != nil || errB != nil {
		if string(was) == string(is) {
			return nil
		}
		return []diffRow{{Was: was, Is: is}}
	}
	return diffNodes("", a, b)
}

func diffNodes(at string, a, b safehtml.Node) (rows []diffRow) {
	if a.Kind != safehtml.Object || b.Kind != safehtml.Object {
		if !sameNode(a, b) {
			rows = append(rows, diffRow{at, a.Raw, b.Raw})
		}
		return rows
	}
	before := make(map[string]safehtml.Node)
	for _, m := range a.Members {
		before[m.Name] = m.Value
	}
	for _, m := range b.Members {
		pointer := at + "/" + escapePointer(m.Name)
		if old, ok := before[m.Name]; ok {
			rows = append(rows, diffNodes(pointer, old, m.Value)...)
		} else {
			rows = append(rows, diffRow{Pointer: pointer, Is: m.Value.Raw})
		}
		delete(before, m.Name)
	}
	for _, m := range a.Members {
		if _, gone := before[m.Name]; gone {
			rows = append(rows, diffRow{Pointer: at + "/" + escapePointer(m.Name), Was: m.Value.Raw})
		}
	}
	return rows
}

// sameNode compares values; numbers by their digits.
func sameNode(a, b safehtml.Node) bool {
	if a.Kind != b.Kind || a.Text != b.Text || len(a.Items) != len(b.Items) || len(a.Members) != len(b.Members) {
		return false
	}
	for i := range a.Items {
		if !sameNode(a.Items[i], b.Items[i]) {
			return false
		}
	}
	for i := range a.Members {
		if a.Members[i].Name != b.Members[i].Name || !sameNode(a.Members[i].Value, b.Members[i].Value) {
			return false
		}
	}
	return true
}
