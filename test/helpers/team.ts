import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { json } from './hostile.js'
import { World } from './world.js'

export const posts = [json(200, { name: 'Fern' })]

/** A user whose store `team` gets its token from a command. */
export class Team extends World {
  /** Makes a script that runs in the home, and returns its path. */
  script(lines: string, name = 'command', mode = 0o700): string {
    this.write(name, `#!/bin/sh\ncd "\${0%/*}"\n${lines}\n`, mode)
    return join(this.home, name)
  }

  takes(command: string, address = 'https://plants.example.com/v1', more: object = {}): this {
    this.save({ stores: { team: { address, 'token-command': command, ...more } } })
    return this
  }

  /** The process whose id a script has written into the file `pid`; it is killed when the test is over. */
  background(): number {
    const pid = parseInt(this.read('pid'), 10)
    onTestFinished(() => void process.kill(pid, 'SIGKILL'))
    return pid
  }
}
