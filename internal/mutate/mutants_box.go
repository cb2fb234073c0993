package main

// boxMutants are of what keeps secrets.
var boxMutants = []mutant{
	{"I7", "a sealed value opens where it does not belong", "internal/box/box.go",
		swap(`Seal(head, nil, data, []byte(label))`, `Seal(head, nil, data, nil)`, `sealed[1+idSize:], []byte(label))`, `sealed[1+idSize:], nil)`),
		"./internal/box", "TestOpen_Refuses"},
	{"I7", "a key prints itself", "internal/box/box.go",
		swap(`return "key " + hex.EncodeToString(id[:])`, `return "key " + hex.EncodeToString(append(id[:], k[:]...))`),
		"./internal/box", "TestKey_StaysOut"},
	{"I7", "a bad key is printed", "internal/box/box.go",
		swap(`fmt.Errorf("box: a key is %d hexadecimal digits", 2*keySize)`, `fmt.Errorf("box: a key is %d hexadecimal digits, not %s", 2*keySize, text)`),
		"./internal/box", "TestKey_StaysOut"},
	{"I7", "a key that others may read is taken", "internal/box/file.go",
		swap(`mode&0o077 != 0`, `mode&0o077 == 0o777`),
		"./internal/box", "TestMakeFile|TestOpenFile"},
}
