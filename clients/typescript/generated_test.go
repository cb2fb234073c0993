package typescript

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-go/fermata/internal/golden"
)

// document is the server's OpenAPI document; a test of the server compares it with the code.
const document = "../../internal/server/openapi.json"

func TestGenerated_TypesMatchOpenAPI(t *testing.T) {
	n := open(t)
	copyFile(t, document, filepath.Join(n.dir, "openapi.json"))
	n.run(t, nil, "node", tools+"openapi-typescript/bin/cli.js", "openapi.json", "-o", "made.ts")
	made, err := os.ReadFile(filepath.Join(n.dir, "made.ts"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "src/schema.ts", made)
}
