import { join } from 'node:path'
import { type IPty, spawn } from '@lydell/node-pty'
import { bin, withoutCache } from './process.js'
import { checkSecretsOf } from './secrets.js'

export interface Terminal {
  /** all that the program has written so far */
  readonly screen: string
  type(text: string): void
  typeBytes(bytes: number[]): void
  /** resolves when the screen holds the text, behind what the last call waited for */
  see(text: string): Promise<void>
  /** waits for each question in turn, and types its answer */
  answer(...answers: [question: string, text: string][]): Promise<void>
  kill(signal: string): void
  /** the exit code, and everything that was on the screen */
  ended: Promise<{ code: number; screen: string }>
}

/** Runs the program on a real terminal of 80 columns. */
export function terminal(
  args: string[],
  folder: string,
  env: Record<string, string> = {},
  columns = 80,
): Terminal {
  const pty = spawn(bin, args, {
    cols: columns,
    rows: 24,
    name: 'xterm-256color',
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      TERM: 'xterm-256color',
      PAGER: 'cat',
      PLANTS_DATA_DIR: join(folder, 'data'),
      ...withoutCache,
      ...env,
    },
  })
  const shown = terminalOf(pty)
  // A service that starts on a terminal shows the token that it makes.
  if (args[0] !== 'serve')
    checkSecretsOf(shown.ended.then(({ screen }) => ({ argv: args, out: screen })))
  return shown
}

/** Runs another program, such as a shell, on a real terminal that is wide enough for whatever it lists. */
export function terminalFor(
  program: string,
  args: string[],
  folder: string,
  env: Record<string, string>,
): Terminal {
  const shown = terminalOf(
    spawn(program, args, {
      cols: 160,
      rows: 50,
      name: 'xterm',
      cwd: folder,
      env: { TERM: 'xterm', ...env },
    }),
  )
  checkSecretsOf(shown.ended.then(({ screen }) => ({ argv: [program, ...args], out: screen })))
  return shown
}

function terminalOf(pty: IPty): Terminal {
  let screen = ''
  let seen = 0
  let look = () => {}
  pty.onData((data) => {
    screen += data
    look()
  })
  const ended = new Promise<{ code: number; screen: string }>((resolve) => {
    pty.onExit(({ exitCode, signal }) =>
      resolve({ code: signal ? 128 + signal : exitCode, screen }),
    )
  })
  const see = (text: string) =>
    new Promise<void>((resolve, reject) => {
      look = () => {
        const at = screen.indexOf(text, seen)
        if (at < 0) return
        seen = at + text.length
        resolve()
      }
      look()
      void ended.then(() =>
        reject(new Error(`The program ended without showing ${JSON.stringify(text)}:\n${screen}`)),
      )
    })
  return {
    get screen() {
      return screen
    },
    type: (text) => pty.write(text),
    // it takes bytes, though its types do not say so
    typeBytes: (bytes) => pty.write(Buffer.from(bytes) as unknown as string),
    see,
    answer: async (...answers) => {
      for (const [question, text] of answers) {
        await see(question)
        pty.write(text)
      }
    },
    kill: (signal) => pty.kill(signal),
    ended,
  }
}
