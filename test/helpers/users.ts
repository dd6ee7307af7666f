import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { type Answer, Hostile, json } from './hostile.js'
import { objectsOf, World } from './world.js'

export const token = 's3cret-of-one-address'
export const fern = 'create --id 1 --name Fern --timeout 3s --output json --store'
/** How a service answers an empty object when it accepts the token, and how it answers a create. */
export const accepts = json(400, { error: 422, message: 'No NewPlant' })
export const created = json(200, { name: 'Fern' })
export const posts = [created]

/** A user who sends tokens; both functions return the exit code. */
export class Sender extends World {
  async login(store: string): Promise<number> {
    return (await this.run(`auth login --from-stdin --store ${store}`, { stdin: token })).code
  }

  async createAt(store: string, env: Record<string, string> = {}): Promise<number> {
    return (await this.run(`${fern} ${store}`, { env })).code
  }
}

export function recorder(...answers: Answer[]): Promise<Hostile> {
  return Hostile.listen({ posts: answers.length === 0 ? posts : answers })
}

export function tokensIn(...servers: Hostile[]): string[][] {
  return servers.map(({ bytes }) => bytes.toString('latin1').match(/s3cret[\w-]*/g) ?? [])
}

/** A token, as it is saved for addresses. */
export function saved(...addresses: string[]) {
  const entry = { token, savedAt: '2026-01-02T03:04:05.678Z' }
  return Object.fromEntries(addresses.map((address) => [address, entry]))
}

export class Team extends World {
  script(lines: string, name = 'command'): string {
    this.write(name, `#!/bin/sh\ncd "\${0%/*}"\n${lines}\n`, 0o700)
    return join(this.home, name)
  }

  takes(command: string, address = 'https://plants.example.com/v1', more: object = {}): this {
    this.save({ stores: { team: { address, 'token-command': command, ...more } } })
    return this
  }
}

type Finding = Record<'check' | 'state' | 'message', string> & { hint?: string }

export class Disk extends World {
  /** One with a plant in the store `local`. */
  static async build(settings: Record<string, unknown> = {}): Promise<Disk> {
    const [disk, other] = [new Disk(settings), new World()]
    await other.run('create --id 1 --name Fern')
    mkdirSync(dirname(disk.store), { mode: 0o700 })
    await other.run(`backup ${disk.store}`) // which nothing has open, and nothing closes later
    return disk
  }

  /** What the doctor finds, and what of that is not well, each of which has a hint. */
  async examine(
    flags = '',
    env: Record<string, string> = {},
    run: (line: string) => Promise<{ code?: number | undefined; out: string }> = (line) =>
      this.run(line, { env }),
  ) {
    const { code, out } = await run(`doctor --output ndjson${flags && ` ${flags}`}`)
    const findings = findingsOf(out)
    const ill = findings.filter(({ state }) => state !== 'ok')
    expect(ill.filter(({ hint }) => hint === undefined)).toEqual([])
    expect(code).toBe(ill.some(({ state }) => state === 'failed') ? 1 : 0)
    return { findings, ill }
  }
}

export function findingsOf(out: string): Finding[] {
  return objectsOf(out) as unknown as Finding[] // the program has printed them
}
