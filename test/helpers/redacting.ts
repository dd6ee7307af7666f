import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Result, type RunOptions, runPlants, withUsual } from './run.js'
import { temporaryFolder } from './temporary.js'

// Whatever runs here, runPlants itself fails when a token is shown: each holds "s3cret", at its beginning and at its
// end.

export const short = 's3cret-of-env-s3cret'
/** As long as those of `plants tokens create`: too long for a message, which then shows its beginning. */
export const long = `plants_s3cret-${'0123456789'.repeat(3)}-s3cret`
export const when = '2026-01-02T03:04:05.678Z'
/** The flags of each way to show an answer. */
export const manners = [['text'], ['json'], ['text', '--verbose'], ['json', '--verbose']]

/** Tokens that cannot be sent. */
export const malformedTokens = [
  's3cret s3cret',
  's3cret\ns3cret',
  's3cret\u001b[31ms3cret',
  's3cr\u00e9t-s3cret',
  '"s3cret"',
  's3cret'.padEnd(5000, 's3cret'),
]

let isOdd = false

/** Somebody who runs each command line in text and in JSON, with traces and without. */
export class OutputUser {
  readonly folder = temporaryFolder()
  readonly file = join(this.folder, 'settings.json')

  write(text: string): this {
    writeFileSync(this.file, text, { mode: 0o600 })
    return this
  }

  async run(argv: string[], world: RunOptions = {}): Promise<Result> {
    const env = {
      PATH: process.env['PATH'] ?? '',
      PLANTS_CONFIG_DIR: this.folder,
      PLANTS_DATA_DIR: join(this.folder, 'data'),
    }
    return runPlants(argv, { cwd: this.folder, ...world, env: { ...env, ...world.env } })
  }

  /** Runs a command line in text and in JSON, one of them with its traces, each time the other one. */
  async someWays(argv: string[], world: RunOptions = {}): Promise<void> {
    isOdd = !isOdd
    for (const [output = '', ...flags] of isOdd
      ? [['text'], ['json', '--verbose']]
      : [['json'], ['text', '--verbose']]) {
      await this.run(withUsual({ '--output': output }, [...argv, ...flags]), world)
    }
  }

  /** Runs a command line in every manner; all that it has said on stderr. */
  async everyWay(argv: string[], world: RunOptions = {}): Promise<string> {
    const said: string[] = []
    for (const [output = '', ...flags] of manners) {
      const line = withUsual({ '--output': output }, [...argv, ...flags])
      said.push((await this.run(line, world)).err)
    }
    return said.join('')
  }
}
