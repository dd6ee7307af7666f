import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import type { Block } from './documents.js'
import { bin } from './process.js'
import { checkSecrets } from './secrets.js'

/**
 * What a block differs in from what the page promises: no error or warning on stderr and exit code 0, or for `console`
 * the text that it shows.
 */
export interface Difference {
  block: string
  exitCode: number | undefined
  /** what was printed, if it is not what the page shows */
  printed: string
}

/** Begins a page in a new shell: what the blocks of another page have exported, and where they went, is forgotten. */
export function openShell(home: string): void {
  rmSync(join(home, session), { force: true })
}

/** Runs a block in the shell of its page; undefined when it did what the page promises. */
export async function runBlock({ language, text }: Block, home: string): Promise<Difference | undefined> {
  if (language === 'sh') {
    const { exitCode, stderr } = await shell(inSession(text), home)
    const printed = withoutNotes(stderr)
    return exitCode === 0 && printed === '' ? undefined : { block: text, exitCode, printed }
  }
  if (language === 'haproxy') return runBlock({ language: 'sh', text: `cat > haproxy.cfg <<'END'\n${text}END\n` }, home)
  if (language !== 'console') return undefined
  const script = `export PLANTS_OUTPUT=text\nexec 2>&1\n${scriptOf(text)}\nunset PLANTS_OUTPUT`
  const { exitCode, stdout } = await shell(inSession(script), home)
  return exitCode === 0 && timeless(stdout) === timeless(text.trimEnd())
    ? undefined
    : { block: text, exitCode, printed: stdout }
}

/** Ends what the page left running. */
export async function closeShell(home: string): Promise<void> {
  await shell(inSession('kill -9 $(cat *.pid) 2> /dev/null || true'), home)
}

/** The file in the home that has what one block leaves to the next one: the exported variables and the directory. */
const session = '.session'

function inSession(lines: string): string {
  const file = `"$HOME/${session}"`
  return `if test -e ${file}; then . ${file}; fi
trap '{ export -p; printf "cd %q\\n" "$PWD"; } > ${file}' EXIT
${lines}`
}

/** What is on stderr besides notes about what was done. */
export function withoutNotes(stderr: string): string {
  const done = /Created store .*|Its id is -?\d+|(?:Deleted|Would delete|Would update) [\d,]+ plants?/
  const notes = new RegExp(`^(?:plants: |\\{"warning":")(?:${done.source})(?:\\n|$)`, 'gm')
  return stderr.replaceAll(notes, '')
}

/** Prints each command of a console block before it runs it, as a terminal shows it. */
function scriptOf(text: string): string {
  const commands = [...text.matchAll(/^\$ (.*)$/gm)].map(([, command = '']) => command)
  return commands
    .map((command) => `printf '%s\\n' '$ ${command.replaceAll("'", "'\\''")}'\n${command} || true`)
    .join('\n')
}

/** A text without what each run has of its own: durations, and the directory that mktemp made. */
function timeless(text: string): string {
  return text.replaceAll(/\d+\.\d s\b/g, '0.1 s').replaceAll(/\/\S*\/tmp\.\w+/g, '/tmp/tmp.XXXX')
}

/** Runs lines in a shell that knows `plants`, each of which must work. */
export async function shell(lines: string, folder: string) {
  const path = join(folder, 'bin')
  const temporary = join(folder, 'tmp')
  if (!existsSync(path)) {
    mkdirSync(path)
    mkdirSync(temporary)
    symlinkSync(bin, join(path, 'plants'))
  }
  const env = {
    PATH: `${path}:${process.env['PATH']}:/usr/sbin`,
    HOME: folder,
    TMPDIR: temporary,
    PLANTS_DATA_DIR: join(folder, 'data'),
  }
  const result = await execa('bash', ['-euo', 'pipefail', '-c', lines], {
    cwd: folder,
    env,
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
  checkSecrets({ argv: [lines], err: result.stderr })
  return result
}
