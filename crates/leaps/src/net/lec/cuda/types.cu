// Types of the arrays that the arguments in arguments.rs point to.

#if SITES < 65535
typedef u16 Near; // a site, or SITES for nothing
#else
typedef u32 Near;
#endif
#if SPINS
typedef float Context;
#define BEHIND 0.0f
#else
typedef u8 Context;
#define BEHIND Q
#endif
