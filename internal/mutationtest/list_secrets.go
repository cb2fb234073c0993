package main

// secretMutants lists the mutants of encryption and keys.
var secretMutants = []mutant{
	{"I7", "seal-bound-to-label", "A sealed value can be opened in another place.",
		all(arg(4, `nil`), at("open-bound-to-label", arg(4, `nil`))), "./internal/seal", "TestOpen_ChangedOrMovedCompressedValueReturnsError|TestOpen_ChangedOrMovedValueReturnsError|TestOpen_MalformedCompressedValueReturnsError|TestOpen_OversizedCompressedValueReturnsErrTooLarge"},
	{"I7", "key-not-printed", "A key prints itself.",
		swap(`id[:]`, `append(id[:], k[:]...)`), "./internal/seal", "TestKey_IsNotPrinted"},
	{"I7", "bad-key-not-printed", "The error of an invalid key contains the key.",
		swap(`digits", 2*keySize`, `digits, not %s", 2*keySize, text`), "./internal/seal", "TestKey_IsNotPrinted"},
	{"I7", "key-file-mode", "A key file that other users can read is accepted.",
		swap(`!= 0`, `== 0o777`), "./internal/seal", "TestCreateKeyFile_OnceAndReadableByOwnerOnly|TestOpenKeyFile_ReportsErrors"},
	{"I2", "rotation-locked", "Two concurrent key rotations remove a key that is still in use.",
		condFalse, "./internal/seal", "TestRotate_ConcurrentRotationIsRejected"},
	{"I2", "rotation-still-current", "A key rotation removes keys that another rotation needs.",
		condFalse, "./internal/seal", "TestRotate_RetireKeepsKeysOfALaterRotation"},
	{"I7", "compression-flag-sealed", "A compressed value can be opened as an uncompressed one, and vice versa.",
		returns("[]byte(label)"), "./internal/seal", "TestSealCompressed_VersionIsAuthenticated"},
	{"I15", "unpack-limit", "A value may decompress to any size.",
		all(condFalse, at("unpack-memory-limit", arg(5, ``))), "./internal/seal", "TestOpen_OversizedCompressedValueReturnsErrTooLarge"},
	{"I7", "seal-without-compression", "The length of a sealed value reveals its content.",
		all(returns(`b.SealCompressed(label, data)`), at("pack-with-compression", returns(`b.seal(version, label, data)`))), "./internal/seal", "TestSeal_LengthDependsOnlyOnDataLength"},
}
