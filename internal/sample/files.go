package sample

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed files/policy.yaml
var policyFile []byte

//go:embed files/groups.yaml
var groupsFile []byte

// Files are the paths of the configuration of the demo.
type Files struct{ Policy, Groups string }

// WriteFiles writes the policy and the groups of the demo to a directory. Existing files stay as
// they are, so that they can be edited.
func WriteFiles(dir string) (Files, error) {
	files := Files{Policy: filepath.Join(dir, "policy.yaml"), Groups: filepath.Join(dir, "groups.yaml")}
	return files, errors.Join(writeNew(files.Policy, policyFile), writeNew(files.Groups, groupsFile))
}

func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
