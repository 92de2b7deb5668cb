// Command release says what a built binary is made of: a bill of materials in CycloneDX 1.6, and the licence texts of all that is
// linked into it. A module without a licence, or with one that is not on the list of permissive ones, is an error.
//
//	release -binary bin/accession -arch amd64 -version v1.2.3 -epoch 1700000000 -sbom accession.cdx.json -licenses licenses
//
// It is run in the root of the repository, with the module cache that the binary was built from. The same binary gives the same files.
package main

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	binary := flag.String("binary", "", "the built binary")
	arch := flag.String("arch", "", "GOARCH that it was built for")
	version := flag.String("version", "", "version that it says it has")
	epoch := flag.Int64("epoch", 0, "time of the commit, in seconds since 1970")
	sbom := flag.String("sbom", "", "file to write the bill of materials to")
	licenses := flag.String("licenses", "", "folder to write licence texts to; it must not exist")
	flag.Parse()
	if err := run(*binary, *arch, *version, time.Unix(*epoch, 0).UTC(), *sbom, *licenses); err != nil {
		log.Fatal(err)
	}
}

func run(binary, arch, version string, built time.Time, sbom, licenses string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	if err := released(binary, info, arch); err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	modules, err := linked(info, arch)
	if err != nil {
		return err
	}
	// First all findings, then the files: who mends one wants to see the others.
	if err := writeLicenses(licenses, modules); err != nil {
		return err
	}
	content, err := billOfMaterials(binary, version, built, info, modules)
	if err != nil {
		return err
	}
	return os.WriteFile(sbom, content, 0o644)
}

// released refuses a binary that was not built as releases are: for arch, static, without the build tags of tests.
func released(binary string, info *buildinfo.BuildInfo, arch string) error {
	program, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer program.Close()
	if machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; program.Machine != machine {
		return fmt.Errorf("is for %v, not for %s", program.Machine, arch)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			return errors.New("is not static")
		}
	}
	wanted := map[string]string{"GOOS": "linux", "GOARCH": arch, "CGO_ENABLED": "0", "-trimpath": "true", "-tags": "grpcnotrace"}
	for _, setting := range info.Settings {
		if want, ok := wanted[setting.Key]; ok {
			if setting.Value != want {
				return fmt.Errorf("built with %s=%s; a release has %q", setting.Key, setting.Value, want)
			}
			delete(wanted, setting.Key)
		}
	}
	for key, value := range wanted {
		return fmt.Errorf("built without %s=%s", key, value)
	}
	return nil
}
