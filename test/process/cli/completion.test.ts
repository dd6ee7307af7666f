import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { bin } from '../../helpers/process.js'
import { isHere } from '../../helpers/programs.js'
import { type Terminal, terminalFor } from '../../helpers/terminal.js'
import { World } from '../../helpers/world.js'

const ready = 'ready> '
const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** `said` shows the words that a line was made of, which is what a shell has inserted, however it draws that. */
const starts: Record<Shell, { args(folder: string): string[]; file: string; lines: string[] }> = {
  bash: {
    args: (folder) => ['--noprofile', '--rcfile', join(folder, '.bashrc'), '-i'],
    file: '.bashrc',
    lines: [
      'said() { printf "<%s>" said "$@"; echo; }',
      'source <(plants completion bash)',
      'PS1="ready> "',
    ],
  },
  zsh: {
    args: () => ['-d', '-i'],
    file: '.zshrc',
    lines: [
      ...['autoload -U compinit', 'compinit -u -D', 'bindkey -e', 'PROMPT_SP='],
      ...[
        'said() { printf "<%s>" said "$@"; echo; }',
        'source <(plants completion zsh)',
        'PS1="ready> "',
      ],
    ],
  },
  fish: {
    args: (folder) => [
      '--no-config',
      '--init-command',
      `source ${join(folder, 'init.fish')}`,
      '-i',
    ],
    file: 'init.fish',
    lines: [
      ...['function said; printf "<%s>" said $argv; echo; end', 'plants completion fish | source'],
      ...['function fish_prompt; printf "ready> "; end', 'set -g fish_autosuggestion_enabled 0'],
    ],
  },
}

const stores = {
  garden: { address: '/srv/garden.db' },
  team: { address: 'https://plants.example.com/v1' },
}

/** Somebody who types in a shell that knows how to complete plants, in a folder of their own. */
class Typist extends World {
  readonly #terminal: Terminal

  /** @param before lines that the shell reads first; `after` are those that it reads last */
  constructor(shell: Shell, before: string[], after: string[]) {
    super({ stores })
    const { args, file, lines } = starts[shell]
    this.write(file, `${[...before, ...lines, ...after].join('\n')}\n`)
    for (const path of ['fern.json', 'two words.json', 'pots.db', 'sub/moss.json'])
      this.write(path, '')
    mkdirSync(join(this.home, 'bin'))
    symlinkSync(bin, join(this.home, 'bin/plants'))
    this.#terminal = terminalFor(shell, args(this.home), this.home, {
      ...{
        PATH: `${join(this.home, 'bin')}:${process.env['PATH']}`,
        HOME: this.home,
        ZDOTDIR: this.home,
      },
      ...{ PLANTS_CONFIG_DIR: this.config, LANG: 'C.UTF-8' },
    })
  }

  /** The words that a line has become, which was typed, with its Tabs. */
  async type(line: string): Promise<string[]> {
    this.#terminal.type(`${line}\u0001said \r`) // Ctrl-A is the beginning of the line
    await this.seen('<said>', ready)
    const shown = this.screen.split('<said>').at(-1) ?? ''
    return [...(shown.split(/[\r\n]/)[0] ?? '').matchAll(/<([^>]*)>/g)].map(
      (match) => match[1] ?? '',
    )
  }

  async seen(...texts: string[]): Promise<void> {
    for (const text of texts) await this.#terminal.see(text)
  }

  /** All that the terminal has shown. */
  get screen(): string {
    return this.#terminal.screen
  }
}

async function typist(
  shell: Shell,
  { before = [], after = [] }: Record<string, string[]> = {},
): Promise<Typist> {
  const person = new Typist(shell, before, after)
  await person.seen(ready)
  return person
}

/** A user with the script of a shell in a file. */
async function withScript(shell: Shell): Promise<World> {
  const user = new World()
  user.write('script', (await user.run(`completion ${shell}`)).out)
  return user
}

async function execute(shell: Shell, args: string[], { home }: World) {
  const env = { HOME: home, ZDOTDIR: home }
  const { exitCode, stdout, stderr } = await execa(shell, args, { cwd: home, env, reject: false })
  return { exitCode, stdout, stderr }
}

/** What each line becomes when it is typed. An X after the Tab shows whether a blank was put there. */
const lines: [typed: string, became?: string][] = [
  ['plants cr\tX', 'plants create X'],
  ['plants create --na\tX', 'plants create --name X'],
  ['plants --store ga\tX', 'plants --store garden X'],
  ['plants --store po\tX', 'plants --store pots.db X'],
  ['plants --store https://pl\tX', 'plants --store https://plX'],
  ['plants create --file fe\tX', 'plants create --file fern.json X'],
  ['plants create --file=fe\tX', 'plants create --file=fern.json X'],
  ['plants create --file tw\tX', 'plants create --file two_words.json X'],
  ['plants create --file su\tX', 'plants create --file sub/X'],
  ['plants stores rem\tte\tX', 'plants stores remove team X'],
  ['plants get fe\tX', 'plants get fern.json X'],
]

async function expectLines(person: Typist): Promise<void> {
  for (const [typed, became] of lines) {
    const words = (await person.type(typed)).map((word) => word.replace(' ', '_'))
    expect({ typed, became: words.join(' ') }).toEqual({ typed, became })
  }
}

describe.each(shells)('%s', (shell) => {
  const here = isHere(shell) ? test : test.skip // not every machine has every shell

  here('inserts what fits', async () => expectLines(await typist(shell)))

  here(
    'completes paths from the home folder, also for the program, and what is quoted',
    async () => {
      const person = await typist(shell)
      const path = join(person.home, 'fern.json')
      expect(await person.type('~/bin/plants create --file ~/fe\tX')).toEqual([
        ...[join(person.home, 'bin/plants'), 'create', '--file', path, 'X'],
      ])
      expect(await person.type('plants create --file "tw\t')).toEqual([
        'plants',
        'create',
        '--file',
        'two words.json',
      ])
    },
  )

  here('runs nothing that is on the line', async () => {
    const person = await typist(shell)
    const words = ['plants', 'create', '--tag', '', '--name', 'X']
    expect(await person.type('plants create --tag "$(echo x >> ./ran)" --na\tX')).toEqual(words)
    expect(person.read('ran')).toBe('x\n') // by Enter, not by Tab
  })

  here('shows no errors, and writes nothing', async () => {
    const person = await typist(shell)
    person.save('{')
    expect(await person.type('plants --store lo\tX')).toEqual(['plants', '--store', 'local', 'X'])
    expect(person.screen).not.toMatch(/are not JSON|rror|nknown|ot found|o such/)
    expect(person.has('data')).toBe(false)
  })
})

describe('bash', () => {
  const here = isHere('bash') ? test : test.skip

  here('inserts a name that looks like a command as a name', async () => {
    const person = await typist('bash')
    mkdirSync(join(person.home, 'local'))
    person.write('local$(touch ran).db', '')
    expect(await person.type('plants create --file l\u001b*')).toContain('local$(touch ran).db')
    expect(person.has('ran')).toBe(false)
  })
})

describe('zsh', () => {
  const here = isHere('zsh') ? test : test.skip

  here('says what it needs, and goes on, where it cannot complete yet', async () => {
    const stderr =
      'plants: completion is not initialized in zsh. First run: autoload -U compinit; compinit'
    const result = await execute(
      'zsh',
      ['-fc', 'set -eu; . ./script; print on'],
      await withScript('zsh'),
    )
    expect(result).toEqual({ exitCode: 0, stdout: 'on', stderr })
  })
})
