import { join } from 'node:path'
import {
  buildJsonResponse,
  type ScriptedResponse,
  ScriptedServer,
} from '../scripted-server/scripted-server.js'
import { Sandbox } from './sandbox.js'

export const token = 's3cret-of-one-address'
export const fern = 'create --id 1 --name Fern --timeout 20s --output json --store'
/** The response to an empty object, by which `auth login` sees that a service accepts the token. */
export const acceptingResponse = buildJsonResponse(400, { error: 422, message: 'No NewPlant' })
export const createdResponse = buildJsonResponse(200, { name: 'Fern' })
export const posts = [createdResponse]

export function startRecorder(...answers: ScriptedResponse[]): Promise<ScriptedServer> {
  return ScriptedServer.listen({ posts: answers.length === 0 ? posts : answers })
}

/** Builds the setting `tokens`, with one token for all addresses. */
export function buildSavedTokens(...addresses: string[]) {
  const entry = { token, savedAt: '2026-01-02T03:04:05.678Z' }
  return Object.fromEntries(addresses.map((address) => [address, entry]))
}

export class TokenCommandSandbox extends Sandbox {
  writeScript(lines: string, name = 'command'): string {
    this.write(name, `#!/bin/sh\ncd "\${0%/*}"\n${lines}\n`, 0o700)
    return join(this.home, name)
  }

  saveTokenCommand(
    command: string,
    address = 'https://plants.example.com/v1',
    more: object = {},
  ): this {
    this.save({ stores: { team: { address, 'token-command': command, ...more } } })
    return this
  }
}
