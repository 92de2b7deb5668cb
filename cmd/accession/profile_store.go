package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
)

// profile is a service and the credentials for it, by a name. Empty fields were not given.
type profile struct {
	URL        string `json:"url"`
	Org        string `json:"org,omitempty"`
	Credential string `json:"credential,omitempty"` // of an organization, usually one that uploads
	Reader     string `json:"reader,omitempty"`     // of an AI reader, for what only that may do
	AdminToken string `json:"admin_token,omitempty"`
}

// profiles are what the user's configuration folder holds, in one file of mode 0600.
type profiles struct {
	Current  string             `json:"current,omitempty"`
	Profiles map[string]profile `json:"profiles"`
}

// maxProfilesBytes is room for some thousand profiles.
const maxProfilesBytes = 4 << 20

var (
	errNoConfigFolder = errors.New("no configuration folder: set XDG_CONFIG_HOME or HOME")
	profileName       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

func (p *profiles) names() []string { return slices.Sorted(maps.Keys(p.Profiles)) }

// configFolder is os.UserConfigDir's accession folder, with this program's idea of the environment.
func (a *App) configFolder() (string, error) {
	if folder := a.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "accession"), nil
	}
	if home := a.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "accession"), nil
	}
	return "", errNoConfigFolder
}

// profilesFile is where the profiles lie or would lie; where a symbolic link leads, if there is one.
func (a *App) profilesFile() (string, error) {
	folder, err := a.configFolder()
	path := filepath.Join(folder, "profiles.json")
	if err != nil {
		return path, err
	}
	if link, err := os.Lstat(path); err != nil || link.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, usagef("%s is a symbolic link to no file that this user can reach; make the file, or remove the link", path)
	}
	return real, keptFrom(folder, path) // who could write there could have the link lead elsewhere
}

// profiles reads the user's profiles; none where there is no file. A file that others can read is refused: what it holds has to be
// taken for known to them.
func (a *App) profiles() (*profiles, error) {
	none := &profiles{Profiles: map[string]profile{}}
	path, err := a.profilesFile()
	if errors.Is(err, errNoConfigFolder) {
		return none, nil // nowhere to keep them: there are none
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the profiles cannot be read: %w", err)
	}
	defer file.Close()
	if err := keptPrivate(file, path); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxProfilesBytes+1))
	if err == nil && len(content) > maxProfilesBytes {
		err = errors.New("it is larger than 4 MiB")
	}
	kept := &profiles{}
	if err == nil {
		err = json.Unmarshal(content, kept)
	}
	if err != nil {
		return nil, &adviceError{fmt.Errorf("the profiles in %s cannot be read: %w", path, withoutContent(err)), "mend or remove that file, then accession profile add"}
	}
	if kept.Profiles == nil {
		kept.Profiles = none.Profiles
	}
	return kept, nil
}

// withoutContent keeps what json quotes of the file, which may be a credential, out of an error.
func withoutContent(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("no JSON at byte %d", syntax.Offset)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("a value of the wrong kind at byte %d", kind.Offset)
	}
	return err
}

// keptPrivate refuses an open file that another user owns, could read, or could put another in the place of.
func keptPrivate(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("the profiles cannot be read: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return usagef("%s is no regular file; move it away", path)
	case info.Mode().Perm()&0o077 != 0:
		return &adviceError{usagef("%s can be read by other users: its credentials are not used", path),
			"chmod 600 " + path + "; if others did read it, have the credentials rotated"}
	case ok && int(owner.Uid) != os.Geteuid():
		return &adviceError{usagef("%s belongs to another user: its credentials are not used", path), "make profiles of your own, or set XDG_CONFIG_HOME"}
	}
	return keptFrom(filepath.Dir(path), path)
}

// keptFrom refuses a folder in which another user could put another file in the place of path.
func keptFrom(folder, path string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("the profiles cannot be read: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return &adviceError{usagef("others can write to %s: %s is not used", folder, filepath.Base(path)), "chmod 700 " + folder}
	}
	return nil
}

// changeProfiles reads, changes and writes the profiles while no other command does. A crash leaves those before or these.
func (a *App) changeProfiles(change func(*profiles) error) error {
	path, err := a.profilesFile()
	if errors.Is(err, errNoConfigFolder) {
		return &usageError{err.Error()}
	}
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("the folder of profiles cannot be made: %w", err)
	}
	lock, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("the folder of profiles cannot be opened: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("the folder of profiles cannot be locked: %w", err)
	}
	if err := keptFrom(folder, path); err != nil {
		return err
	}
	kept, err := a.profiles()
	if err != nil {
		return err
	}
	if err := change(kept); err != nil {
		return err
	}
	content, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return fmt.Errorf("encode profiles: %w", err)
	}
	if err := writeWhole(path, append(content, '\n')); err != nil {
		return fmt.Errorf("the profiles cannot be kept: %w", err)
	}
	return lock.Sync()
}

// writeWhole replaces path by a file of mode 0600 that is durable before it has the name. Its folder is not synced.
func writeWhole(path string, content []byte) error {
	next, err := os.OpenFile(path+".next", os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = next.Chmod(0o600) // a file left by a crash may have had another mode
	if err == nil {
		_, err = next.Write(content)
	}
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		os.Remove(next.Name())
	}
	return err
}
