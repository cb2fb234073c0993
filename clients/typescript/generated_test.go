package typescript

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write what is generated")

// document is the server's OpenAPI document; a test of the server holds it against the code.
const document = "../../server/openapi.json"

func TestGenerated_TypesAreThoseOfTheServer(t *testing.T) {
	n := open(t)
	copyFile(t, document, filepath.Join(n.dir, "openapi.json"))
	n.run(t, nil, "node", tools+"openapi-typescript/bin/cli.js", "openapi.json", "-o", "made.ts")
	made, err := os.ReadFile(filepath.Join(n.dir, "made.ts"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "src/schema.ts", string(made))
}

func compare(t *testing.T, file, made string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != made {
		t.Errorf("%s is not what the server says any more: run go test ./clients/typescript -run Generated -update, and look at the difference", file)
	}
}
