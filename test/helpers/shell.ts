import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { bin } from './process.js'
import { temporaryFolder } from './temporary.js'
import { type Terminal, terminalFor } from './terminal.js'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** The package that many have, which changes how bash completes. */
export const bashCompletion = '/usr/share/bash-completion/bash_completion'

/** `said` shows the words that a line was made of, which is what a shell has inserted, however it draws that. */
const starts: Record<Shell, { args(folder: string): string[]; file: string; lines: string[] }> = {
  bash: {
    args: (folder) => ['--noprofile', '--rcfile', join(folder, '.bashrc'), '-i'],
    file: '.bashrc',
    lines: ['said() { printf "<%s>" said "$@"; echo; }', 'source <(plants completion bash)', 'PS1="ready> "'],
  },
  zsh: {
    args: () => ['-d', '-i'],
    file: '.zshrc',
    lines: [
      ...['autoload -U compinit', 'compinit -u -D', 'bindkey -e', 'PROMPT_SP='],
      ...['said() { printf "<%s>" said "$@"; echo; }', 'source <(plants completion zsh)', 'PS1="ready> "'],
    ],
  },
  fish: {
    args: (folder) => ['--no-config', '--init-command', `source ${join(folder, 'init.fish')}`, '-i'],
    file: 'init.fish',
    lines: [
      ...['function said; printf "<%s>" said $argv; echo; end', 'plants completion fish | source'],
      ...['function fish_prompt; printf "ready> "; end', 'set -g fish_autosuggestion_enabled 0'],
    ],
  },
}

interface Surroundings {
  /** lines that the shell reads first */
  before?: string[]
  /** lines that the shell reads last */
  after?: string[]
  /** what is in the folder: texts by their paths */
  files?: Record<string, string>
}

/** Somebody who types in a shell that knows how to complete plants, in a folder of their own. */
export class Typist {
  readonly folder = temporaryFolder()
  readonly #terminal: Terminal

  constructor(shell: Shell, { before = [], after = [], files = {} }: Surroundings = {}) {
    const { args, file, lines } = starts[shell]
    const all = { ...files, [file]: `${[...before, ...lines, ...after].join('\n')}\n` }
    for (const [path, text] of Object.entries(all)) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true, mode: 0o700 })
      writeFileSync(join(this.folder, path), text, { mode: 0o600 })
    }
    mkdirSync(join(this.folder, 'bin'))
    symlinkSync(bin, join(this.folder, 'bin/plants'))
    this.#terminal = terminalFor(shell, args(this.folder), this.folder, {
      ...{ PATH: `${join(this.folder, 'bin')}:${process.env['PATH']}`, HOME: this.folder, ZDOTDIR: this.folder },
      ...{ PLANTS_CONFIG_DIR: join(this.folder, 'settings'), LANG: 'C.UTF-8' },
    })
  }

  async ready(): Promise<this> {
    await this.#terminal.see('ready> ')
    return this
  }

  /** The words that a line has become, which was typed, with its Tabs. */
  async type(line: string): Promise<string[]> {
    this.#terminal.type(`${line}\u0001said \r`) // Ctrl-A is the beginning of the line
    await this.#terminal.see('<said>')
    await this.#terminal.see('ready> ')
    const shown = this.#terminal.screen.split('<said>').at(-1) ?? ''
    return [...(shown.split(/[\r\n]/)[0] ?? '').matchAll(/<([^>]*)>/g)].map((match) => match[1] ?? '')
  }

  /** Types, and resolves when the terminal shows texts, one behind the other; then throws the line away. */
  async see(line: string, texts: string[]): Promise<void> {
    this.#terminal.type(line)
    for (const text of texts) await this.#terminal.see(text)
    this.#terminal.type('\u0015said\r') // Ctrl-U takes the line away; Ctrl-C would take away what is typed next, too
    await this.#terminal.see('<said>')
    await this.#terminal.see('ready> ')
  }

  /** All that the terminal has shown. */
  get screen(): string {
    return this.#terminal.screen
  }
}
