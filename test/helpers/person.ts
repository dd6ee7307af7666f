import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect } from 'vitest'
import { type ProcessResult, plants } from './process.js'
import { ownService } from './remote.js'
import { temporaryFolder } from './temporary.js'
import { type Terminal, terminal } from './terminal.js'

/** Somebody at a terminal, with a home of their own. */
export class Person {
  readonly folder = temporaryFolder()
  readonly config = join(this.folder, 'config')
  readonly file = join(this.config, 'settings.json')

  session(line: string, env: Record<string, string> = {}): Terminal {
    return terminal(line.split(' '), this.folder, { PLANTS_CONFIG_DIR: this.config, ...env })
  }

  /** Runs a command that asks nothing; gives what was on the screen, line by line. */
  async at(line: string, env: Record<string, string> = {}): Promise<{ code: number; lines: string[] }> {
    const { code, screen } = await this.session(line, env).ended
    return { code, lines: linesOf(screen) }
  }

  piped(line: string, input?: string, env: Record<string, string> = {}): Promise<ProcessResult> {
    const options = { env: { PLANTS_CONFIG_DIR: this.config, ...env }, ...(input === undefined ? {} : { input }) }
    return plants(line.split(' '), this.folder, options)
  }

  /** Everything that is in the folder of the settings. */
  get kept(): string {
    const names = existsSync(this.config) ? readdirSync(this.config, { recursive: true, encoding: 'utf8' }) : []
    const files = names.map((name) => join(this.config, name)).filter((path) => statSync(path).isFile())
    return files.map((path) => readFileSync(path, 'latin1')).join('\n')
  }
}

/** What was on a screen, line by line, without colours. */
export function linesOf(screen: string): string[] {
  return stripVTControlCharacters(screen).trimEnd().split('\r\n')
}

/** The address of the program's own service, which accepts the token. */
export function service(): Promise<string> {
  return ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
}

/** Types a token where it is asked for; nothing of it may be seen. */
export async function typeToken(
  session: Terminal,
  address: string,
  text: string,
): Promise<{ code: number; lines: string[] }> {
  await session.see(`token for ${address}`)
  for (const character of text) session.type(character)
  session.type('\r')
  const { code, screen } = await session.ended
  expect(screen).not.toContain(text.slice(0, 5))
  expect(screen).not.toContain('***')
  return { code, lines: linesOf(screen) }
}
