import type { Options } from 'execa'
import { countsOf, journalsOf, writeLines } from './import.js'
import type { RunOptions } from './run.js'
import { World } from './world.js'

const token = 's3cret-of-this-test'

interface Imported {
  code: number | string | undefined
  counts: object | undefined
  err: string
  /** how many are not done */
  journals: number
}

/** A user who imports the file plants.ndjson into a service. */
export class ServiceImport extends World {
  readonly #command: string

  constructor(lines: readonly string[], store: string, flags = '') {
    super()
    writeLines(this.home, lines)
    this.#command = `import plants.ndjson --store ${store}${flags && ` ${flags}`}`
  }

  async import(flags = '', options: RunOptions = {}): Promise<Imported> {
    const env = { PLANTS_TOKEN: token, ...options.env }
    return this.#imported(
      await this.run(`${this.#command}${flags && ` ${flags}`}`, { ...options, env }),
    )
  }

  startImport(flags = '', options: Options = {}) {
    return this.start(`${this.#command}${flags && ` ${flags}`}`, {
      env: { PLANTS_TOKEN: token },
      ...options,
    })
  }

  async ended(child: ReturnType<World['start']>): Promise<Imported> {
    const { exitCode, signal, stdout, stderr } = await child
    return this.#imported({ code: exitCode ?? signal, out: String(stdout), err: String(stderr) })
  }

  #imported({ code, out, err }: { code: Imported['code']; out: string; err: string }): Imported {
    return {
      code,
      counts: out === '' ? undefined : countsOf(out),
      err,
      journals: journalsOf(this).length,
    }
  }
}

export function idOf(line: string): string {
  return /-?\d+/.exec(line)?.[0] ?? ''
}

/** That each plant of some lines was made once, as a `PlantService` counts. */
export function eachOnce(lines: readonly string[]): Map<string, number> {
  return new Map(lines.map((line) => [idOf(line), 1]))
}
