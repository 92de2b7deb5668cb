package extract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// convert has LibreOffice read a file of the room and write what it becomes into the room's folder "out".
func (e *Extractor) convert(ctx context.Context, program string, r *room, name string, kind legacyType) error {
	if err := r.put("profile/user/registrymodifications.xcu", strings.NewReader(libreOfficeSettings)); err != nil {
		return err
	}
	w := walls{memory: e.limits.WorkerMemory, cpu: e.limits.WorkerCPU, allowMissing: e.config.AllowMissingWalls}
	args := append(w.args("convert"), "-program="+program, "-room="+r.dir, "-in="+name, "-filter="+kind.filter, "-to="+kind.becomes,
		fmt.Sprintf("-file-bytes=%d", e.limits.ExpandedBytes))
	for range 3 {
		again, err := e.convertOnce(ctx, r, args)
		if !again {
			return err
		}
	}
	return errors.New("LibreOffice does not come to work")
}

// exitRestart is what LibreOffice ends with after it has made itself a profile, and wants to be started again.
const exitRestart = 81

func (e *Extractor) convertOnce(ctx context.Context, r *room, args []string) (again bool, err error) {
	p, err := e.start(ctx, "LibreOffice", args)
	if err != nil {
		return false, err
	}
	p.stdin.Close()
	watching, stop := context.WithCancel(ctx)
	watched := make(chan bool, 1)
	go func() {
		full := false
		r.watch(watching, e.limits.ExpandedBytes, func() { full = true; p.kill() })
		watched <- full
	}()
	err = p.wait()
	stop()
	atFileLimit := false // a file at its limit fills the room too: what ended the process counts
	if state := p.cmd.ProcessState; state != nil {
		status, _ := state.Sys().(syscall.WaitStatus)
		atFileLimit = status.Signaled() && status.Signal() == syscall.SIGXFSZ
	}
	if <-watched && !atFileLimit {
		return false, refuse(CodeExpands)
	}
	return err != nil && p.cmd.ProcessState.ExitCode() == exitRestart, err
}

// convertWorker locks this process in and becomes LibreOffice.
func convertWorker(args []string) error {
	flags, walls := cageFlags("convert")
	program := flags.String("program", "", "")
	room := flags.String("room", "", "")
	in := flags.String("in", "", "")
	filter := flags.String("filter", "", "")
	to := flags.String("to", "", "")
	fileBytes := flags.Uint64("file-bytes", 0, "")
	if err := flags.Parse(args); err != nil {
		return setupError{err}
	}
	stderr, err := walls.lockIn(officeCage(*program, *room, *fileBytes))
	if err != nil {
		return err
	}
	if err := unix.Dup3(2, 1, 0); err != nil { // what it prints is of no use to anybody
		return setupError{err}
	}
	err = syscall.Exec(*program, []string{
		*program, "--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck",
		"-env:UserInstallation=file://" + *room + "/profile", "-env:OSL_SOCKET_PATH=" + *room,
		"--infilter=" + *filter, "--convert-to", *to, "--outdir", filepath.Join(*room, "out"), filepath.Join(*room, *in),
	}, []string{"HOME=" + *room, "TMPDIR=" + *room, "LC_ALL=C.UTF-8", "SAL_USE_VCLPLUGIN=svp", "SAL_DISABLE_OPENCL=1"})
	speak(stderr)
	return setupError{fmt.Errorf("run LibreOffice: %w", err)}
}

// officeCage holds LibreOffice: it also writes in its room, and has a socket that nobody can be reached with.
func officeCage(program, room string, fileBytes uint64) cage {
	return cage{
		readable:  append([]string{filepath.Dir(filepath.Dir(program)), "/etc/fonts", "/etc/libreoffice", "/var/lib/libreoffice", "/var/spool/libreoffice", "/var/cache/fontconfig"}, systemFiles...),
		private:   room,
		fileBytes: fileBytes,
		calls:     officeCalls,
		files:     256,
	}
}

// officeCalls allows LibreOffice the local socket that it opens to be found by a second LibreOffice; it cannot connect one to
// anything. It puts the socket into /tmp wherever it is told to go, unless /tmp says that it cannot be written to: so says
// every folder that is asked for that alone.
func officeCalls() ([]seccomp.Filter, error) {
	conditions := []seccomp.NameWithConditions{
		when("socket", 0, seccomp.Equal, unix.AF_UNIX),
		when("socketpair", 0, seccomp.Equal, unix.AF_UNIX),
		when("faccessat", 2, seccomp.NotEqual, unix.W_OK),
	}
	if runtime.GOARCH == "amd64" { // arm64 has but the newer one
		conditions = append(conditions, when("access", 1, seccomp.NotEqual, unix.W_OK))
	}
	return allBut(conditions, refusedCalls, networkCalls)
}

// findLibreOffice is the program itself, without the scripts around it; empty when it is not installed.
func findLibreOffice(name string) string {
	found, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if found, err = filepath.EvalSymlinks(found); err != nil {
		return ""
	}
	program, err := filepath.Abs(filepath.Join(filepath.Dir(found), "soffice.bin"))
	if err != nil {
		return ""
	}
	if info, err := os.Stat(program); err != nil || info.IsDir() {
		return ""
	}
	return program
}

// libreOfficeSettings: no macros, no scripts, no links followed, nothing fetched, nothing kept. The cage holds without them.
const libreOfficeSettings = `<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="MacroSecurityLevel" oor:op="fuse"><value>3</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update"><prop oor:name="Link" oor:op="fuse"><value>0</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Content/Update"><prop oor:name="Link" oor:op="fuse"><value>1</value></prop></item>
</oor:items>
`
