package yamlfile

import "go.yaml.in/yaml/v3"

// Line returns the line of a value: a path of keys and of positions in lists. It is 0 if there is
// no such value.
func Line(text []byte, path ...any) int {
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return 0
	}
	node := document.Content[0]
	for _, key := range path {
		if node = child(node, key); node == nil {
			return 0
		}
	}
	return node.Line
}

// child returns the value of a key, or the item at a position; nil if there is none.
func child(node *yaml.Node, key any) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch key := key.(type) {
	case int:
		if node.Kind == yaml.SequenceNode && key < len(node.Content) {
			return node.Content[key]
		}
	case string:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				return node.Content[i+1]
			}
		}
	}
	return nil
}
