package compat

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A rename is one row of renames.tsv: what the recording calls Old, the current program calls New.
type rename struct{ kind, old, new string }

// The kinds of renames.
const (
	// JSON key; "parent.key" renames it only directly below parent, ".key" only in the outermost
	// object
	renameKey    = "key"
	renameValue  = "value"  // JSON string, as a whole; "key=value" renames it only below key
	renamePath   = "path"   // URL path; {} stands for one segment
	renameParam  = "param"  // query parameter
	renameHeader = "header" // request header
)

// renames translate recorded names to current ones.
type renames []rename

func readRenames(file string) (renames, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list renames
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || !slices.Contains([]string{renameKey, renameValue, renamePath, renameParam, renameHeader}, fields[0]) {
			return nil, fmt.Errorf("%s:%d: want kind, old and new, separated by tabs", file, number)
		}
		list = append(list, rename{fields[0], fields[1], fields[2]})
	}
	return list, lines.Err()
}

// exchange returns the exchange with the current names.
func (r renames) exchange(e exchange) exchange {
	e.Request = r.request(e.Request)
	// the audit log is served as it is stored, and stored names do not change
	if e.Response.ContentType != ndjson {
		e.Response.Body = r.json(nil, e.Response.Body)
	}
	unordered := slices.Clone(e.Unordered)
	for i, key := range unordered {
		unordered[i] = r.name(renameKey, nil, key)
	}
	e.Unordered = unordered
	return e
}

func (r renames) request(q request) request {
	path, query, found := strings.Cut(q.Path, "?")
	q.Path = r.path(path)
	if found {
		q.Path += "?" + r.query(query)
	}
	header := make(map[string]string)
	for name, value := range q.Header {
		header[r.name(renameHeader, nil, name)] = value
	}
	q.Header = header
	q.Body = r.json(nil, q.Body)
	return q
}

// name returns the current name of one thing. A row with a parent comes before one without.
func (r renames) name(kind string, path []string, old string) string {
	qualified := "." + old
	if len(path) > 0 {
		qualified = map[string]string{renameKey: path[len(path)-1] + "." + old, renameValue: path[len(path)-1] + "=" + old}[kind]
	}
	for _, name := range []string{qualified, old} {
		for _, row := range r {
			if row.kind == kind && row.old == name {
				return row.new
			}
		}
	}
	return old
}

func (r renames) path(path string) string {
	segments := strings.Split(path, "/")
	for _, row := range r {
		pattern := strings.Split(row.old, "/")
		if row.kind != renamePath || len(pattern) != len(segments) {
			continue
		}
		var wild []string
		matches := true
		for i, part := range pattern {
			if part == "{}" {
				wild = append(wild, segments[i])
			} else {
				matches = matches && part == segments[i]
			}
		}
		if matches {
			renamed := row.new
			for _, segment := range wild {
				renamed = strings.Replace(renamed, "{}", segment, 1)
			}
			return renamed
		}
	}
	return path
}

// query renames parameters and, as "param=value", their values.
func (r renames) query(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(value); err == nil {
			if renamed := r.name(renameValue, []string{name}, plain); renamed != plain {
				value = url.QueryEscape(renamed)
			}
		}
		parts[i] = r.name(renameParam, nil, name) + "=" + value
	}
	return strings.Join(parts, "&")
}

// json renames the keys and strings of a JSON value. path holds the old keys above it.
func (r renames) json(path []string, value any) any {
	if len(r) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[r.name(renameKey, path, key)] = r.json(append(slices.Clone(path), key), inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = r.json(path, v[i])
		}
		return out
	case string:
		return r.name(renameValue, path, v)
	}
	return value
}

// at returns the value at a place of a JSON value that has the current names. The place is given in
// recorded names, separated by dots.
func (r renames) at(value any, place string) any {
	var path []string
	for part := range strings.SplitSeq(place, ".") {
		if index, err := strconv.Atoi(part); err == nil {
			list, _ := value.([]any)
			if index >= len(list) {
				return nil
			}
			value = list[index]
			continue
		}
		object, _ := value.(map[string]any)
		value = object[r.name(renameKey, path, part)]
		path = append(path, part)
	}
	return value
}
