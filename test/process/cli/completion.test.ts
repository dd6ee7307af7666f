import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bin } from '../../helpers/sandbox/process.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { openTerminal, type Terminal } from '../../helpers/sandbox/terminal.js'

const ready = 'ready> '
const said = 'said() { printf "<%s>" said "$@"; echo; }'

/**
 * What each shell reads first. `said` shows the words that a line was made of, however the shell
 * draws that.
 */
const shells = {
  bash: {
    ...{ file: '.bashrc', args: ['--noprofile', '--rcfile', '.bashrc', '-i'] },
    lines: [said, 'source <(plants completion bash)', `PS1="${ready}"`],
  },
  zsh: {
    ...{ file: '.zshrc', args: ['-d', '-i'] },
    lines: [
      ...['autoload -U compinit', 'compinit -u -D', 'bindkey -e', 'PROMPT_SP='],
      ...[said, 'source <(plants completion zsh)', `PS1="${ready}"`],
    ],
  },
  fish: {
    ...{ file: 'init.fish', args: ['--no-config', '--init-command', 'source init.fish', '-i'] },
    lines: [
      ...['function said; printf "<%s>" said $argv; echo; end', 'plants completion fish | source'],
      ...[`function fish_prompt; printf "${ready}"; end`, 'set -g fish_autosuggestion_enabled 0'],
    ],
  },
}
type Shell = keyof typeof shells

/** Somebody who types in a shell that knows how to complete plants, in a folder of their own. */
class Typist extends Sandbox {
  readonly #terminal: Terminal

  constructor(shell: Shell) {
    const team = { address: 'https://plants.example.com/v1' }
    super({ stores: { garden: { address: '/srv/garden.db' }, team } })
    const { file, args, lines } = shells[shell]
    this.write(file, `${lines.join('\n')}\n`)
    for (const path of ['fern.json', 'two words.json', 'pots.db', 'sub/moss.json'])
      this.write(path, '')
    const path = join(this.home, 'bin')
    mkdirSync(path)
    symlinkSync(bin, join(path, 'plants'))
    this.#terminal = openTerminal(shell, args, this.home, {
      ...{ PATH: `${path}:${process.env['PATH']}`, ZDOTDIR: this.home },
      ...{ PLANTS_CONFIG_DIR: this.config, LANG: 'C.UTF-8', TERM: 'xterm' },
    })
  }

  static async at(shell: Shell): Promise<Typist> {
    const typist = new Typist(shell)
    await typist.#terminal.waitForText(ready)
    return typist
  }

  /** The words that a line has become, which was typed, with its Tabs. */
  async type(line: string): Promise<string[]> {
    this.#terminal.type(`${line}\u0001said \r`) // Ctrl-A is the beginning of the line
    await this.#terminal.waitForText('<said>')
    await this.#terminal.waitForText(ready)
    const [shown = ''] =
      this.screen
        .split('<said>')
        .at(-1)
        ?.split(/[\r\n]/) ?? []
    return Array.from(shown.matchAll(/<([^>]*)>/g), ([, word = '']) => word)
  }

  /** All that the terminal has shown. */
  get screen(): string {
    return this.#terminal.screen
  }
}

/**
 * What each line becomes when it is typed. An X after the Tab shows whether a blank was put there.
 */
const lines: [typed: string, became: string[]][] = [
  ['plants cr\tX', ['plants', 'create', 'X']],
  ['plants create --na\tX', ['plants', 'create', '--name', 'X']],
  ['plants list --output nd\tX', ['plants', 'list', '--output', 'ndjson', 'X']],
  ['plants --store ga\tX', ['plants', '--store', 'garden', 'X']],
  ['plants --store po\tX', ['plants', '--store', 'pots.db', 'X']],
  ['plants --store https://pl\tX', ['plants', '--store', 'https://plX']],
  ['plants create --file=fe\tX', ['plants', 'create', '--file=fern.json', 'X']],
  ['plants create --file tw\tX', ['plants', 'create', '--file', 'two words.json', 'X']],
  ['plants create --file "tw\t', ['plants', 'create', '--file', 'two words.json']],
  ['plants create --file su\tX', ['plants', 'create', '--file', 'sub/X']],
  ['plants list --tag fe\tX', ['plants', 'list', '--tag', 'feX']],
  ['plants get po\tX', ['plants', 'get', 'poX']],
  ['plants config set output nd\tX', ['plants', 'config', 'set', 'output', 'ndjson', 'X']],
  ['plants stores rem\tte\tX', ['plants', 'stores', 'remove', 'team', 'X']],
]

for (const shell of Object.keys(shells) as Shell[])
  describe.skipIf(!isInstalled(shell))(`the completion of ${shell} (needs ${shell})`, () => {
    test('inserts the words that fit', async () => {
      const typist = await Typist.at(shell)
      const became: typeof lines = []
      for (const [typed] of lines) became.push([typed, await typist.type(typed)])
      expect(became).toEqual(lines)
      const home = (path: string) => join(typist.home, path)
      expect(await typist.type('~/bin/plants create --file ~/fe\tX')).toEqual([
        ...[home('bin/plants'), 'create', '--file', home('fern.json'), 'X'],
      ])
    })

    test('runs no command that stands on the line', async () => {
      const typist = await Typist.at(shell)
      const words = ['plants', 'create', '--tag', '', '--name', 'X']
      expect(await typist.type('plants create --tag "$(echo x >> ./ran)" --na\tX')).toEqual(words)
      expect(typist.read('ran')).toBe('x\n') // by Enter, not by Tab
    })

    test('shows no errors, and writes no files', async () => {
      const typist = await Typist.at(shell)
      typist.save('{')
      expect(await typist.type('plants --store lo\tX')).toEqual(['plants', '--store', 'local', 'X'])
      expect(typist.screen).not.toMatch(/are not JSON|rror|nknown|ot found|o such/)
      expect(typist.has('data')).toBe(false)
    })
  })

test.skipIf(!isInstalled('bash'))(
  'the completion of bash inserts a name that looks like a command as a name (needs bash)',
  async () => {
    const typist = await Typist.at('bash')
    mkdirSync(join(typist.home, 'local'))
    typist.write('local$(touch ran).db', '')
    expect(await typist.type('plants create --file l\u001b*')).toContain('local$(touch ran).db')
    expect(typist.has('ran')).toBe(false)
  },
)
